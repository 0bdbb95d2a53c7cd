"""Every figure of every chapter as it opens equals its snapshot, which `python -m tests.pages.test_figures` writes.

That snapshots are right, other tests and a look at the pages show.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import components, figures
from tests.visits import CHAPTERS, Visits
from viz_core.view.components import unframe

RECORDED = Path(__file__).with_name("figures.json")
_PLACES = 4  # decimal places that are recorded, of numbers near 1


def summary(values: Any) -> list[float] | list[str]:
    """Of numbers: how many, how many are gaps, the first, the last, their mean, and a mean that knows their order."""
    flat = np.ravel(np.asarray(values))
    if flat.dtype.kind not in "fiub":
        if not all(isinstance(each, int | float | None) for each in flat):
            return [str(len(flat)), *map(str, (flat[0], flat[-1]) if len(flat) else ())]
        flat = np.array([np.nan if each is None else each for each in flat], dtype=float)
    flat = flat.astype(float)
    known = np.nan_to_num(flat, posinf=0, neginf=0)
    order = np.linspace(0, 1, len(flat))
    ends = known[[0, -1]] if len(flat) else np.zeros(2)
    numbers = [
        len(flat),
        np.isnan(flat).sum(),
        *ends,
        known.mean() if len(flat) else 0,
        (known * order).sum() / max(1, len(flat)),
    ]
    return [float(f"{number:.{_PLACES}g}") for number in numbers]


def drawn(figure: dict[str, Any]) -> list[Any]:
    """Of each trace its kind, name and colours, and what is drawn; of each axis its title and range."""
    traces = []
    for trace in figure["data"]:
        marker, line = trace.get("marker", {}), trace.get("line", {})
        colours = [
            summary(each) if isinstance(each, list | np.ndarray) else each
            for each in (marker.get("color"), line.get("color"))
        ]
        style = [trace.get(name) for name in ("type", "mode", "name", "zmin", "zmax")]
        traces.append([*style, *colours, *(summary(trace[part]) for part in ("x", "y", "z") if part in trace)])
    axes = {name: axis for name, axis in figure["layout"].items() if name[1:].startswith("axis")}
    titles = [[name, axis.get("title", {}).get("text"), axis.get("autorange")] for name, axis in sorted(axes.items())]
    return [traces, titles, len(figure["layout"].get("shapes", ())), len(figure["layout"].get("annotations", ()))]


def heatmaps(app: AppTest) -> list[Any]:
    found = [unframe(proto.bytes)[0] for proto in components(app, "heatmap")]
    return [[each[name] for name in ("rows", "columns", "low", "high")] for each in found]


def recorded_of(app: AppTest) -> list[Any]:
    names = [proto.id.split("-figure-", 1)[1] for proto in components(app, "chart")]
    shown = [[name, *drawn(figure)] for name, figure in zip(names, figures(app), strict=True)]
    return json.loads(json.dumps([*shown, ["heatmaps", heatmaps(app)]], default=float))


def differences(own: Any, other: Any, place: str = "") -> list[str]:
    """Where two of them differ by more than other machines round."""
    if isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        return [
            each for i, pair in enumerate(zip(own, other, strict=True)) for each in differences(*pair, f"{place}.{i}")
        ]
    numbers = isinstance(own, int | float) and isinstance(other, int | float)
    same = own == pytest.approx(other, rel=0.01, abs=2e-3) if numbers else own == other
    return [] if same else [f"{place}: {own} instead of {other}"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_figures_of_a_chapter_equal_the_snapshot(visits: Visits, chapter: str) -> None:
    found, recorded = recorded_of(visits(chapter)), json.loads(RECORDED.read_text(encoding="utf-8"))[chapter]
    changed = [each[0] for each, other in zip(found, recorded, strict=False) if differences(each, other)]
    assert changed == [], "where that is meant: python -m tests.pages.test_figures"
    assert [each[0] for each in found] == [each[0] for each in recorded]


QUERIES, KEYS, VALUES, WEIGHTS = "#0072b2", "#d55e00", "#009e73", "#a34b82"
OF_WORDS = {"query": QUERIES, "queries": QUERIES, "key": KEYS, "keys": KEYS, "value": VALUES, "values": VALUES}


def colour_of(trace: dict[str, Any]) -> Any:
    return trace.get("marker", {}).get("color") or trace.get("line", {}).get("color")


def test_queries_keys_values_and_weights_have_one_colour_each_in_every_chapter(visits: Visits) -> None:
    named, bars = [], []
    for chapter in CHAPTERS:
        for figure in figures(visits(chapter)):
            axes = (axis for name, axis in figure["layout"].items() if name[1:5] == "axis")
            titles = {axis.get("title", {}).get("text") for axis in axes}
            for trace in figure["data"]:
                words = re.findall(r"\w+|×", trace.get("name") or "")
                quantities = [OF_WORDS[word] for word in words if word in OF_WORDS]
                if quantities and "×" not in words:  # "keys and values": a point is its value, at its key
                    named.append((chapter, trace["name"], colour_of(trace), quantities[-1]))
                elif trace["type"] == "bar" and not words and titles & {"weight", "attention weight"}:
                    bars.append((chapter, colour_of(trace)))
    assert [each for each in named if each[2] != each[3]] == []
    assert len({each[0] for each in named}) >= 2
    assert {*bars} == {(each, WEIGHTS) for each in ("queries-keys-values", "attention-pooling", "scoring-functions")}


if __name__ == "__main__":
    visits = Visits()
    of_chapters = [
        f"{json.dumps(chapter)}: [\n"
        + ",\n".join(json.dumps(each, ensure_ascii=False) for each in recorded_of(visits(chapter)))
        + "\n]"
        for chapter in CHAPTERS
    ]
    RECORDED.write_text("{\n" + ",\n".join(of_chapters) + "\n}\n", encoding="utf-8")
