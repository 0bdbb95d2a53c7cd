"""The chapter on linear attention: its figures against the library, and what it says of them."""

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.linear_attention.parts import Layer, about_row
from tests.pages.reading import claim_names, drawn, figure_names
from tests.visits import Visits
from ui.blocks.stopwatch import LiveTraining
from ui.text.words import load_words
from viz_core.lessons.linear_attention import LETTERS, RecallPlan, RecallRun, draw_numbers, draw_stream

OpenPage = Callable[..., AppTest]
CHAPTER = "linear-attention"
WORDS = load_words(CHAPTER, "en")


def test_opens_with_one_number_a_key(visits: Visits) -> None:
    app = visits(CHAPTER)
    stream = draw_numbers(2)
    weights = stream.operator("sum", 0.9).map()[0, 0]
    np.testing.assert_array_equal(drawn(app, "map")[0]["z"], weights.float().numpy())
    sums = [0.0] * len(LETTERS)  # of what was written under each letter, by hand
    for letter, number in zip(stream.written[:12], stream.values[:12, 0].tolist(), strict=True):
        sums[letter] += number
    np.testing.assert_array_equal(drawn(app, "state")[0]["y"], sums)
    assert {"map", "state", "decay", "added", "erased", "errors"} <= set(figure_names(app))
    assert {"same", "chunks", "causal", "equal", "age", "written", "orthogonal"} <= set(claim_names(app))


def test_a_row_is_written_out() -> None:
    layer = Layer("delta", 11, 0.9, 2)
    assert about_row(layer.forms(), layer.stream(), 11)["sum"] == "0.9 × 8 = 7.2"  # written one token ago, then faded


def test_overlapping_keys_draw_the_state_as_a_matrix(visits: Visits) -> None:
    app = visits(CHAPTER, **{"la-keys": "overlapping"})
    stream = draw_stream(2)
    operator = stream.operator("sum", 0.9)
    np.testing.assert_allclose(drawn(app, "map-overlapping")[0]["z"], operator.map()[0, 0].float().numpy())
    state = operator.states(stream.values[None, None])[0, 0, 11]
    np.testing.assert_allclose(drawn(app, "state-overlapping")[0]["z"], state.float().numpy())


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
