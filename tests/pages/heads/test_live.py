"""Scans made on the page: of a model of the lab, of own texts, stopped and resumed, bounded where hosted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.heads import live
from tests.pages.reading import drawn, figure_names, texts
from tests.viz_core.hub.tiny_models import build_all
from ui.compute.models import evaluate_model
from ui.text.words import load_words
from viz_core.hub import load_hub
from viz_core.hub.scan import scan
from viz_core.pretrained.scan_inputs import SETS, scan_inputs, scan_picture

OpenPage = Callable[..., AppTest]
CHAPTER = "heads"
WORDS = load_words(CHAPTER, "en")
LINES = ("The cat looked at the cat, and the cat sat.", "She reads a letter.", "The dog sat.", "word " * 600)
pytestmark = pytest.mark.usefixtures("offline_lab")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("gpt2", "t5", "vit"), tmp_path_factory.mktemp("models"))


def open_lab(open_page: OpenPage, model: str, **params: str) -> AppTest:
    return open_page(CHAPTER, **{"hs-model": "lab", "hs-lab": model, **params})


def test_a_model_of_the_lab_is_scanned_on_the_readers_own_texts(open_page: OpenPage, folders: Path) -> None:
    app = open_lab(open_page, "gpt2", **{"hs-texts": "own", "hs-own": "\n".join(LINES), "hs-y": "entropy"})
    assert not app.exception
    assert "heads" not in figure_names(app), "nothing is computed before it is asked for"
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    model = load_hub(folders / "gpt2", device="cpu")
    (kind,) = scan(model, LINES, worth=4).kinds.values()
    found = drawn(app, "heads")
    for axis, measure in (("x", "previous"), ("y", "entropy")):
        points = np.concatenate([trace[axis] for trace in found])
        one = kind.summary(measure)
        expected = one.mean if measure == "entropy" else (one.mean - one.chance) / (1 - one.chance)
        np.testing.assert_allclose(np.sort(points), np.sort(expected), rtol=1e-4, atol=1e-6)
    lengths = np.concatenate([trace["error_y"]["array"] for trace in found])
    assert np.isfinite(lengths).all(), "each number has an interval"
    written = texts(app)
    assert "Skipped: 1. The first is line 4" in written
    assert "`python -m recipes scan gpt2 --texts FILE --out FILE --worth 4`" in written
    app.selectbox(key="hs-y").select("worth").run()
    points = np.concatenate([trace["y"] for trace in drawn(app, "heads")])
    np.testing.assert_allclose(np.sort(points), np.sort(kind.summary("worth").mean), rtol=1e-3, atol=1e-5)
    assert WORDS("unit.words") in texts(app)


@pytest.mark.parametrize(("model", "pictures", "axis"), [("vit", True, "distance"), ("t5", False, "entropy")])
def test_narrow_and_broad_inputs_are_scanned_one_after_the_other(
    open_page: OpenPage, folders: Path, model: str, pictures: bool, axis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_MOST", {False: 3, True: 3})
    app = open_lab(open_page, model, **{"hs-y": axis, "open-all": "false"})
    kinds = {}
    for name in SETS:
        app.button_group(key="hs-texts").set_value([name]).run()
        app.button(key="hs-scan-go").click().run()
        assert not app.exception
        inputs = scan_inputs(name, pictures)[:3]
        given = [scan_picture(each) for each in inputs] if pictures else inputs
        kinds[name] = scan(load_hub(folders / model, device="cpu"), given).kinds["encoder-self"]
    app.toggle(key="open-all").set_value(True).run()
    assert not app.exception
    assert ("python -m recipes scan" in texts(app)) != pictures, "the command line takes no pictures"
    points = drawn(app, "sets")[0]
    np.testing.assert_allclose(points["x"], kinds["narrow"].summary(axis).mean, rtol=1e-4)
    np.testing.assert_allclose(points["y"], kinds["broad"].summary(axis).mean, rtol=1e-4)
    assert f"ml-model={model}" in [link.proto.query_string for link in app.get("page_link")]


def test_the_command_is_of_the_scan_that_is_shown(open_page: OpenPage) -> None:
    """The writer's tables ship; those of own texts are made here."""
    app = open_page(CHAPTER, **{"hs-texts": "own", "hs-own": "A cat.\nA dog sat."})
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    assert "`python -m recipes scan writer-en --texts FILE" in texts(app)
    assert "hs-texts=own&hs-own=A+cat" in texts(app), "the link to the card opens it over the same texts"


def test_a_scan_is_stopped_and_goes_on(open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are done are not done again."""
    app = open_lab(open_page, "gpt2", **{"hs-texts": "own", "hs-own": "A cat.\n" * 30, "open-all": "false"})
    calls: list[int] = []

    def evaluated(model: object, function: Callable[..., object], *args: object) -> object:
        calls.append(len(calls))
        if len(calls) == 4:
            raise ValueError("the model went away")
        return evaluate_model(model, function, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "evaluate_model", evaluated)
    app.button(key="hs-scan-go").click().run()
    assert "the model went away" in texts(app)
    assert "heads" not in figure_names(app)
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    assert "heads" in figure_names(app)


def test_a_scan_is_bounded_where_hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "is_hosted", lambda: True)
    assert len(live.task_of("writer-en", "narrow", pictures=False).inputs) == 40
    monkeypatch.setattr(live, "is_hosted", lambda: False)
    assert len(live.task_of("writer-en", "narrow", pictures=False).inputs) == 120
