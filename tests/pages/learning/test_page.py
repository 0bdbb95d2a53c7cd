"""The learning chapter through AppTest: recorded runs and one's own, looked back at, and tested past their length."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.view_bytes import decode_view
from pages.learning.runs import RECORDED, OwnRun
from serving.settings import Settings
from tests.pages.reading import badges, components, drawn, figures, one_line, texts
from tests.visits import Visits
from ui.chapter import parts
from ui.compute.slots import time_limit
from ui.text.markdown import unescape
from viz_core.runtime.assets import reading
from viz_core.tasks import Plan, Shape, TaskRun
from viz_core.tasks.film import Film, load_film

OpenPage = Callable[..., AppTest]
CHAPTER = "learning"
OWN = {"l-source": "Train one now"}


def maps(app: AppTest, place: int = 0) -> np.ndarray:
    """Every head's exact map in an attention view of the page, as it was sent."""
    view = decode_view(components(app, "attention_view")[place].bytes)
    return np.stack([part for name, part in sorted(view.parts.items()) if name.startswith("map")])


def test_it_opens_on_a_recorded_run_and_every_head_of_its_last_step(visits: Visits) -> None:
    app = visits(CHAPTER)
    film = load_film(RECORDED / "repeat-two-layers-0.npz")
    assert f"after **{film.shots[-1]}** updates: **{film.held_out[-1]:.0%}**" in texts(app)
    weights = film.maps[-1].astype(np.float32)
    np.testing.assert_allclose(maps(app).reshape(weights.shape), weights / weights.sum(-1, keepdims=True), atol=1e-6)
    assert all(badges(app).values())
    lines = {trace["name"]: trace for trace in drawn(app, "curve")}
    np.testing.assert_allclose(lines["held-out"]["y"], film.held_out, atol=1e-6)
    assert len(drawn(app, "heads")) == film.plan.shape.num_layers * film.plan.shape.num_heads
    jump = int(np.abs(np.diff(film.held_out)).argmax())
    marks = {(mark["type"], mark["x0"], mark["x1"]) for mark in figures(app, "curve")[0]["layout"]["shapes"]}
    assert marks == {("line", 400, 400), ("rect", film.shots[jump], film.shots[jump + 1])}


def test_the_time_line_goes_back_to_any_shot(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"l-run": "repeat, one layer", "l-step": "30", "l-measure": "entropy (bits)"})
    film = load_film(RECORDED / "repeat-one-layer-0.npz")
    assert "after **30** updates" in texts(app)
    first = maps(app)
    app.slider(key="l-step").set_value(0).run()
    assert f"after **0** updates: **{film.held_out[0]:.0%}**" in texts(app)
    np.testing.assert_allclose(maps(app).reshape(film.maps.shape[1:]), film.maps[0], atol=2e-3)
    assert np.abs(maps(app) - first).max() > 0.1
    assert len(drawn(app, "heads")) == film.plan.shape.num_layers * film.plan.shape.num_heads


def test_two_runs_side_by_side_are_at_the_same_step(visits: Visits) -> None:
    app = visits(CHAPTER, **{"l-beside": "repeat, two layers", "l-other-seed": "2", "l-step": "100"})
    assert "**repeat, two layers, seed 0**, seed 0, after **100**" in texts(app)
    other = load_film(RECORDED / "repeat-two-layers-2.npz")
    shot = other.shots.index(100)
    np.testing.assert_allclose(maps(app, 1).reshape(other.maps.shape[1:]), other.maps[shot], atol=2e-3)
    curves = [trace["name"] for trace in drawn(app, "curve")]
    assert len(set(curves)) == len(curves)
    assert {name for name in curves if "seed 2" in name}


@pytest.fixture
def stopped(open_page: OpenPage) -> AppTest:
    """A run of the reader's own that was stopped half way."""
    plan = Plan("copy", Shape(1, 2, 32), steps=8, every=2, batch_size=4, longest=4)
    run = TaskRun(plan)
    list(run.advance(4))
    app = open_page(CHAPTER, **OWN, **{"l-task": "copy"})
    app.session_state["l-train"] = OwnRun(run.advance(), {}, 8, state="stopped", runs={"your run": run})
    return app.run()


def test_training_begins_with_a_click_and_shows_what_it_has(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **OWN, **{"l-steps": "100", "l-width": "32", "l-differs": "layers"})
    assert "This trains a new model" in texts(app)
    assert not figures(app, "curve")
    app.button(key="l-train-start").click().run()
    assert not app.exception
    run: OwnRun = app.session_state["l-train"]
    assert [r.plan.shape.num_layers for r in run.runs.values()] == [2, 1]
    assert run.done > 0
    assert {"layers: 2", "layers: 1"} <= {trace.get("name") for figure in figures(app) for trace in figure["data"]}
    app.button(key="l-train-stop").click().run()
    assert re.search(r"Stopped after \d+ of 100 updates", texts(app))


def test_a_stopped_run_is_looked_back_at_and_goes_on(stopped: AppTest) -> None:
    assert "Stopped after 4 of 8 updates" in texts(stopped)
    assert stopped.slider(key="l-step").max == 4
    stopped.slider(key="l-step").set_value(2).run()
    assert "after **2** updates" in texts(stopped)
    stopped.button(key="l-train-resume").click().run()
    stopped.run()
    assert stopped.session_state["l-train"].done > 4


def test_the_open_head_does_not_change_while_a_run_goes_on() -> None:
    run = TaskRun(Plan("copy", Shape(2, 4, 32), steps=40, every=4, batch_size=16, longest=4))
    list(run.advance(4))
    own = OwnRun(iter(()), {}, 40, runs={"your run": run})
    first = own.measured_runs()["your run"].opens_with
    best = own.measured_runs()["your run"].measures["previous"]
    list(run.advance(36))
    later = own.measured_runs()["your run"]
    assert len(later.film.shots) > len(best), "it has gone on"
    later.measures["induction"][-1] = 0
    later.measures["induction"][-1, first.layer - 1, first.head - 1] = 1  # another head has the most now
    assert later.opens_with == first


def test_the_slider_moves_every_map_and_the_curve_of_the_main_figure(visits: Visits) -> None:
    app = visits(CHAPTER, **{"open-all": "false", "l-update": "100"})
    film = load_film(RECORDED / "repeat-two-layers-0.npz")
    shot = film.shots.index(100)
    shown = np.stack([trace["z"] for trace in drawn(app, "every-head")])
    np.testing.assert_allclose(shown.reshape(film.maps.shape[1:]), film.maps[shot], atol=2e-3)
    (line,) = figures(app, "together")[0]["layout"]["shapes"]
    assert line["x0"] == 100


def test_a_run_says_what_it_was_whatever_the_controls_say_now(stopped: AppTest) -> None:
    stopped.selectbox(key="l-task").set_value("sort").run()
    assert "*copy*, positions: rotary, layers: 1, heads per layer: 2, width: 32" in texts(stopped)


@pytest.mark.parametrize(("done", "says"), [(2, "spent"), (8, "finished")])
def test_training_that_ends_early_ran_out_of_its_time(done: int, says: str) -> None:
    run = TaskRun(Plan("copy", Shape(1, 2, 32), steps=8, every=2, batch_size=4, longest=4))
    list(run.advance(done))
    own = OwnRun(iter(()), {}, 8, runs={"your run": run})
    own.step()
    assert own.state == says


def test_a_run_of_ones_own_is_drawn_past_its_length(stopped: AppTest) -> None:
    stopped.button(key="l-test-own").click().run()
    assert not stopped.exception
    assert "Your run after 4 updates: *copy*, rotary, trained up to length 4" in one_line(stopped)
    (yours,) = (trace for trace in drawn(stopped, "reach") if trace.get("name") == "your run")
    run = stopped.session_state["l-train"].first
    assert yours["y"][3] == pytest.approx(run.accuracy(int(yours["x"][3]), 64), abs=1e-3)


def test_strangers_get_small_models_and_a_minute(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    app = open_page(CHAPTER, **OWN, **{"l-layers": "4", "l-width": "256"})
    captions = [caption.value for caption in app.caption if "The address asks for" in caption.value]
    assert ["Layers = 4" in captions[0], "Width = 256" in captions[1]] == [True, True]
    app.button(key="l-train-start").click().run()
    assert app.session_state["l-train"].series.most == time_limit()
    assert Settings.model_fields["max_seconds"].default == 60


def test_a_recorded_run_that_is_lost_is_a_sentence(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In any language."""

    def lost(*_: object) -> Film:
        with reading(tmp_path / "lost.npz"):
            return load_film(tmp_path / "lost.npz")

    monkeypatch.setattr("pages.learning.parts.recorded", lost)
    app = open_page(CHAPTER, lang="pt-BR")
    (message,) = (unescape(error.value) for error in app.error)
    assert message == "O arquivo lost.npz do Atlas está faltando ou danificado. Instale o Atlas de novo."


def test_it_opens_before_the_first_update_and_plays_to_the_last(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SECONDS", 0.0)
    app = open_page(CHAPTER, **{"open-all": "false"})
    seen = [app.slider(key="l-update").value]
    app.button(key="l-update-play").click().run()
    while seen[-1] != 400:
        seen.append(app.slider(key="l-update").value)
        app.run()
    assert seen[0] == 0
    assert seen == sorted(seen)
    (line,) = figures(app, "together")[0]["layout"]["shapes"]
    assert line["x0"] == 400
