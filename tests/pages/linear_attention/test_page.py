"""The chapter on linear attention: its figures against the library, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, claim_names, drawn, figure_names, number, stands
from tests.visits import Visits
from ui.blocks.stopwatch import LiveTraining
from ui.text.words import load_words
from viz_core.lessons.linear_attention.layers import all_forms, draw_stream
from viz_core.lessons.linear_attention.recall import RecallPlan, RecallRun

OpenPage = Callable[..., AppTest]
CHAPTER = "linear-attention"
WORDS = load_words(CHAPTER, "en")
RULES = {name: load_words(CHAPTER, "en")(f"option.{name}") for name in ("sum", "decay", "delta")}


def test_opens_with_numbers_of_the_library(visits: Visits) -> None:
    app = visits(CHAPTER)
    stream = draw_stream(2)
    operator = stream.operator("sum", 0.9)
    np.testing.assert_allclose(drawn(app, "map")[0]["z"], operator.map()[0, 0].float().numpy())
    state = operator.states(stream.values[None, None])[0, 0, 11]
    np.testing.assert_allclose(drawn(app, "state")[0]["z"], state.float().numpy())
    assert {"map", "state", "decay", "added", "erased", "errors"} <= set(figure_names(app))
    assert {"same", "chunks", "causal", "equal", "age", "written", "orthogonal"} <= set(claim_names(app))


@pytest.mark.parametrize("rule", ["sum", "decay"])
def test_only_the_delta_rule_has_a_removal_to_leave_out(visits: Visits, rule: str) -> None:
    app = visits(CHAPTER, **{"la-rule": WORDS(f"option.{rule}")})
    assert "la-break" not in [control.key for control in app.segmented_control]
    assert not app.exception


def test_a_link_that_breaks_the_removal_opens_on_the_delta_rule(visits: Visits) -> None:
    app = visits(CHAPTER, **{"la-break": WORDS("option.no-removal")})
    assert {control.key: control.value for control in app.segmented_control}["la-rule"] == "delta"


@pytest.fixture
def trained(open_page: OpenPage) -> tuple[AppTest, RecallRun]:
    """A run of a few updates that was stopped."""
    run = RecallRun(RecallPlan(steps=4, writes=2, seed=3))
    list(run.advance(2))
    app = open_page(CHAPTER, **{"la-size": "8", "la-pairs": "16"})
    app.session_state["la-train"] = LiveTraining(run.advance(), {}, 4, state="stopped", runs={"train": run})
    return app.run(), run


def test_recall_draws_the_last_test_and_goes_on(trained: tuple[AppTest, RecallRun]) -> None:
    app, run = trained
    step, found = next(reversed(run.tests.items()))
    for name, shares in (("recall", found[:, 1]), ("recall-size", found[:, :, 3])):
        *lines, chance = drawn(app, name)
        np.testing.assert_allclose([line["y"] for line in lines], shares, atol=1e-6)
        np.testing.assert_allclose(chance["y"], 1 / 16)
    assert f"Tested after **{step}** updates: each key written twice, seed 3" in " ".join(m.value for m in app.markdown)
    assert "Stopped after 2 of 4 updates." in [caption.value for caption in app.caption]
    app.button(key="la-train-resume").click().run()
    app.run()
    assert run.step > 2


def test_training_begins_with_a_click_and_stops(open_page: OpenPage) -> None:
    app = open_page(CHAPTER, **{"la-steps": "100", "la-train-seed": "5", "la-writes": "twice"})
    assert "recall" not in figure_names(app)
    app.button(key="la-train-start").click().run()
    assert not app.exception
    live = app.session_state["la-train"]
    assert live.first.plan == RecallPlan(100, 2, 5)
    assert live.done > 0
    assert {"recall", "recall-size"} <= set(figure_names(app))
    app.button(key="la-train-stop").click().run()
    assert live.state == "stopped"


def test_the_slider_moves_the_state(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    before = drawn(app, "state")[0]["z"]
    app.slider(key="la-time").set_value(3).run()
    after = drawn(app, "state")[0]["z"]
    assert not np.array_equal(before, after)
    stream = draw_stream(2)
    state = stream.operator("sum", 0.9).states(stream.values[None, None])[0, 0, 2]
    torch.testing.assert_close(torch.tensor(after), state.float())


@pytest.mark.parametrize(("rule", "time", "seed"), [("sum", 12, 2), ("decay", 1, 0), ("delta", 16, 7)])
def test_of_the_row(visits: Visits, rule: str, time: int, seed: int) -> None:
    """The three numbers add up to the row that is drawn, and the state has as many numbers as it says."""
    app = visits(CHAPTER, **{"la-rule": RULES[rule], "la-time": str(time), "la-seed": str(seed)})
    stands(app)
    row = drawn(app, "map")[0]["z"][time - 1]
    written = [number(app, words) for words in ("weight", "on its last value,", "on earlier values,")]
    assert sum(map(abs, written)) == pytest.approx(np.abs(row).sum(), abs=0.02)
    assert not row[time:].any()
    assert number(app, f"The state after token {time}:") == drawn(app, "state")[0]["z"].size


def test_of_the_map_without_erasing(visits: Visits) -> None:
    option = load_words(CHAPTER, "en")("option.no-removal")
    app = visits(CHAPTER, **{"la-rule": RULES["delta"], "la-break": option})
    intact, broken = drawn(app, "map")[0]["z"], drawn(app, "map-broken")[0]["z"]
    assert np.abs(intact - broken).max() > 0.1
    error = next(text for text in (m.value for m in app.markdown) if text.startswith(":red["))
    assert float(error.split("`")[1]) == pytest.approx(number(app, "The error of all outputs is") / 100, rel=0.02)
    stream = draw_stream(2)
    faded = all_forms(stream.operator("delta", 0.6), stream.values, broken=True).map_error
    assert faded == pytest.approx(0.27, abs=0.005)
    assert number(app, "a = 0.6$ it is") == 27


def test_of_what_states_return(visits: Visits) -> None:
    """Orthogonal keys: the delta rule's bars are 0; a sum's are not where a letter was written twice."""
    app = visits(CHAPTER, **{"la-orthogonal": "true", "la-time": "16"})
    added, erased = (trace["y"] for trace in drawn(app, "errors"))
    assert np.abs(erased).max() < 1e-6
    assert added.max() > 0.5
    assert all(badges(app).values())
