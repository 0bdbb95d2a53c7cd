"""The chapter on linear attention through AppTest: its pictures are the library's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.reading import claim_names, drawn, figure_names
from ui.text.words import load_words
from viz_core.lessons.linear_attention.stream import draw_stream

OpenPage = Callable[..., AppTest]
CHAPTER = "linear-attention"
WORDS = load_words(CHAPTER, "en")


def test_opens_with_numbers_of_the_library(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    stream = draw_stream(2)
    operator = stream.operator("delta", 0.9)
    np.testing.assert_allclose(drawn(app, "map")[0]["z"], operator.map()[0, 0].float().numpy())
    state = operator.states(stream.values[None, None])[0, 0, 11]
    np.testing.assert_allclose(drawn(app, "state")[0]["z"], state.float().numpy())
    assert {"map", "state", "decay", "added", "erased", "errors", "recall"} <= set(figure_names(app))
    assert {"same", "chunks", "causal", "equal", "age", "written", "orthogonal"} <= set(claim_names(app))


@pytest.mark.parametrize("rule", ["sum", "decay"])
def test_only_the_delta_rule_has_a_removal_to_leave_out(open_page: OpenPage, rule: str) -> None:
    app = open_page(CHAPTER, **{"la-rule": WORDS(f"option.{rule}")})
    assert "la-break" not in [control.key for control in app.segmented_control]
    assert not app.exception


def test_the_slider_moves_the_state(open_page: OpenPage) -> None:
    app = open_page(CHAPTER)
    before = drawn(app, "state")[0]["z"]
    app.slider(key="la-time").set_value(3).run()
    after = drawn(app, "state")[0]["z"]
    assert not np.array_equal(before, after)
    stream = draw_stream(2)
    state = stream.operator("delta", 0.9).states(stream.values[None, None])[0, 0, 2]
    torch.testing.assert_close(torch.tensor(after), state.float())
