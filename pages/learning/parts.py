"""The main figure, heads of a model that learns to repeat, and accuracy beyond the trained length."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st
import torch
from PIL import Image

from pages.learning import figures
from pages.learning.figures import (
    PAPERS,
    PUBLISHED,
    Reach,
    published_order,
    read_reaches,
    reversed_pairs,
    strongest_head,
)
from pages.learning.runs import RECORDED, MeasuredRun, OwnRun, recorded, stored_run
from ui.blocks.over_picture import tiles, weights_image
from ui.chapter.chapter import Chapter
from ui.chapter.parts import Slideshow
from ui.compute.slots import run_in_slot
from ui.widgets.chart import Point
from ui.widgets.choices import Mark, Marks
from viz_core.lessons.learning import right_by_length, shot_weights
from viz_core.runtime.assets import reading
from viz_core.tasks import POSITIONS
from viz_core.tasks.film import load_film

ANSWERS = Marks(
    "figure-every-head",
    tuple(Mark(y=ends, part=".js-plotly-plot") for ends in ((0.0, 0.5), (0.5, 0.98))),
    {"update": 0},
    {"update": 400},
)
"""The maps of either layer."""
SOLVED, LEAST_INDUCTION = 0.85, 0.5


_PLAYED = (0, 20, 40, 60, 80, 90, 100, 110, 120, 140, 200, 300, 400)  # updates: most where heads form


def induction(chapter: Chapter) -> None:
    """Draw the heads at an update, the curves, and two checks; broken, beside it, with one layer or untrained.

    It opens before the first update, and plays.
    """
    slideshow = Slideshow(chapter.controls, "update", _PLAYED)
    broken = chapter.break_it("one-layer", "untrained")
    chapter.fragment(partial(_at_an_update, chapter, slideshow, broken), every=slideshow.every)


def _at_an_update(chapter: Chapter, slideshow: Slideshow, broken: str) -> None:
    shots = recorded("repeat-two-layers", 0).film.shots
    slideshow.step()
    with chapter.main_controls():
        step = int(chapter.controls.slider("update", 0, shots[-1], 0, shots[1]))
        slideshow.button()
    chapter.side_by_side(broken, partial(_draw, chapter, step, bool(broken)))
    chapter.guidance("main")


def _draw(chapter: Chapter, step: int, narrow: bool, setting: str) -> None:
    run = recorded("repeat-one-layer" if setting == "one-layer" else "repeat-two-layers", 0)
    film, names = run.film, chapter.words.group("figure")
    end = 0 if setting == "untrained" else len(film.shots) - 1
    shot = min(run.shot(step), end)
    # Beside another figure the curves come first: a layer less makes the maps lower.
    curves, maps = (st.container(), st.container()) if narrow else reversed(st.columns([3, 2], gap="medium"))
    with maps:
        at = f"{film.shots[shot]:,}"
        figure = figures.every_head_figure(shot_weights(film, shot), film.read)
        chapter.figure("every-head", figure, bar=False, step=at, layers=film.maps.shape[1], text=" ".join(film.read))
    with curves:
        heads = {name: strongest_head(run.measures[name]) for name in ("previous", "induction")}
        values: dict[str, Any] = {name: f"{run.measures[name][shot, *head]:.2f}" for name, head in heads.items()}
        figure = figures.together_figure(film, run.measures, heads, film.shots[shot], names)
        on_click = partial(_go_to, chapter) if setting != "untrained" else None
        right = f"{film.held_out[shot]:.0%}"
        chapter.figure("together", figure, bar=False, on_click=on_click, step=at, right=right, **values)
    with chapter.claim_row("main"):
        chapter.claim_at_least("learns", float(film.held_out[end]), SOLVED)
        chapter.claim_at_least("finds", _most_induction(run, end), LEAST_INDUCTION)


def _most_induction(run: MeasuredRun, shot: int) -> float:
    return float(run.measures["induction"][shot].max())


def _go_to(chapter: Chapter, point: Point) -> None:
    """Move the slider to the update that was clicked."""
    st.session_state[chapter.controls.key("update")] = round(float(point["x"]) / 10) * 10


OWN_LENGTHS = (2, 4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60)


@st.cache_resource(max_entries=1, show_spinner=False)
def measured() -> dict[str, Any]:
    """What the recording command wrote."""
    with reading(path := RECORDED / "extrapolation.json"):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        read_reaches(content)
        return content


def past_length(chapter: Chapter) -> None:
    """Draw the figure, the table, and where the order differs from published ones."""
    recorded = measured()
    reaches = read_reaches(recorded)
    plan, lengths = recorded["plan"], recorded["lengths"]
    sizes = {"layers": plan["shape"]["num_layers"], "heads": plan["shape"]["num_heads"]}
    values = {"steps": f"{plan['steps']:,}", "longest": plan["longest"], "last": lengths[-1]}
    chapter.text("past", width=plan["shape"]["num_hiddens"], **sizes, **values)
    chapter.fragment(partial(_figure, chapter, reaches))
    _table(chapter, reaches)
    for paper, cited in PAPERS.items():
        pairs = reversed_pairs(reaches, paper)
        names = _labels(chapter)
        exceptions = [chapter.words("ahead-of", ahead=names[ahead], behind=names[behind]) for ahead, behind in pairs]
        chapter.finding("agrees", not pairs, paper=cited, pairs=exceptions)


def _labels(chapter: Chapter) -> dict[str, str]:
    """Labels of the figures, with those of all position schemes."""
    return chapter.words.group("figure") | {name: chapter.words(f"option.{name}") for name in POSITIONS}


def _figure(chapter: Chapter, reaches: Mapping[str, Reach]) -> None:
    """The curves, and the reader's own once it is tested."""
    run, names = stored_run(chapter), _labels(chapter)
    yours = _own(chapter, run) if run is not None else []
    summary = {names[name]: f"{reach.past.mean():.0%}" for name, reach in reaches.items()}
    chapter.figure("reach", figures.reach_figure(reaches, yours, names), summary=summary)
    if run is None:
        chapter.text("no-own-run")


def _own(chapter: Chapter, run: OwnRun) -> list[tuple[int, float]]:
    """A button that tests the reader's run, and its results."""
    first = run.first
    if first.task.finite:
        chapter.text("no-lengths")
        return []
    step = first.step
    clicked = st.button(
        chapter.words("test-own"),
        key=chapter.controls.key("test-own"),
        icon=":material/straighten:",
        disabled=run.state == "running",
    )
    if clicked and run.state != "running" and step not in run.tested:
        run.tested = {step: run_in_slot(lambda: right_by_length(first, OWN_LENGTHS), "learning")}
    if step in run.tested:
        scheme = chapter.words(f"option.{first.plan.shape.positions}")
        task = chapter.words(f"option.{first.plan.task}")
        chapter.text("own-tested", step=f"{step:,}", task=task, scheme=scheme, longest=first.plan.longest)
    return run.tested.get(step, [])


def _table(chapter: Chapter, reaches: Mapping[str, Reach]) -> None:
    """Our order beside those of the papers."""
    orders = {paper: published_order(paper) for paper in PUBLISHED}
    rows = [chapter.words("orders.head")]
    for place, (name, reach) in enumerate(reaches.items(), start=1):
        ranks = {paper: str(order.index(name) + 1) if name in order else "–" for paper, order in orders.items()}
        rows.append(
            chapter.words(
                "orders.row",
                scheme=chapter.words(f"option.{name}"),
                place=place,
                within=f"{reach.within.mean():.0%}",
                past=f"{reach.past.mean():.0%}",
                low=f"{reach.past.min():.0%}",
                high=f"{reach.past.max():.0%}",
                **ranks,
            )
        )
    st.markdown("\n".join(rows))
    chapter.guidance("orders")


SHOTS = 5


def gallery_picture() -> Image.Image:
    """Two layers learning to repeat: a row per head of the second layer, a column per snapshot."""
    film = load_film(RECORDED / "repeat-two-layers-0.npz")
    last = len(film.shots) - 1
    shots = [round(last * (place / (SHOTS - 1)) ** 2) for place in range(SHOTS)]
    maps = torch.stack([shot_weights(film, shot)[1] for shot in shots], dim=1)
    return weights_image(tiles(maps.flatten(0, 1), columns=SHOTS).numpy())
