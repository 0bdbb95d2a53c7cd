"""Predictions drawn on a figure that hides its answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.attention_pooling import parts as pooling
from pages.queries_keys_values import parts as names
from pages.relative_projection import parts as rotation
from pages.scoring_functions import parts as scores
from tests.pages.reading import components, figures, texts
from tests.visits import Visits
from ui.text.words import ENGLISH, load_words
from ui.widgets.predictions import TOP, OnFigure, Truth

HIDDEN = load_words("common", ENGLISH)("sketch.kept-back")
DRAWN: dict[tuple[str, str], tuple[OnFigure, Callable[[], Truth]]] = {
    ("queries-keys-values", "warm"): (names.THE_ROW, names.warm_weights),
    ("attention-pooling", "wide"): (pooling.THE_FIT, pooling.wide_fit),
    ("scoring-functions", "row"): (scores.THE_ROW, scores.row),
    ("relative-projection", "hand"): (rotation.THE_HAND, rotation.hand),
}


def numbers(app: AppTest, figure: str) -> np.ndarray:
    """Every coordinate and value that a figure has, in one row."""
    found = (np.ravel(trace[part]) for trace in figures(app, figure)[0]["data"] for part in "xyz" if part in trace)
    return np.concatenate([each.astype(float) for each in found if each.dtype.kind in "fiu"])


@pytest.mark.parametrize(("chapter", "name"), DRAWN)
def test_a_figure_keeps_its_answer_until_it_is_drawn(visits: Visits, chapter: str, name: str) -> None:
    on, find = DRAWN[chapter, name]
    words = load_words(chapter, ENGLISH)
    key = f"{words.prefix}-guess-{name}"
    values = find().values
    levels = [TOP * value if on.board.kind == "weights" else value for value in on.board.levels(values)]
    guess = "".join(f"{min(max(round(level), 0), TOP):02}" for level in levels)

    app = visits(chapter, **{f"{key}-drawn": "true"})
    assert figures(app, on.figure)[0]["about"]["alt"] == HIDDEN
    before = numbers(app, on.figure)
    assert "**Yes.**" not in texts(app)

    app = visits(chapter, **{f"{key}-drawn": "true", key: guess})
    assert figures(app, on.figure)[0]["about"]["alt"] != HIDDEN
    after = numbers(app, on.figure)
    revealed = [value for value in values if value and not np.isclose(before, value, atol=1e-6, rtol=0).any()]
    assert len(revealed) >= len(values) / 4, "the answer was there before"
    assert all(np.isclose(after, value, atol=0.05).any() for value in revealed)
    assert "**Yes.**" in texts(app)
    assert len(components(app, "sketch")) >= 1
