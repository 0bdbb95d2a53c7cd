"""Predictions: drawn on a figure that hides its answer, and book exercises whose results have every number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.architectures import parts as architectures
from pages.architectures.parts import SizeInputs
from pages.attention_pooling import parts as pooling
from pages.queries_keys_values import parts as names
from pages.relative_projection import parts as rotation
from pages.scoring_functions import parts as scores
from tests.pages.reading import components, figures, texts
from tests.visits import Visits
from ui.chapter.chapter import Chapter
from ui.text.words import ENGLISH, languages, load_words
from ui.widgets.predictions import TOP, OnFigure, Truth
from viz_core.lessons.architectures.costs import LayerSizes

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


class Sheet(Chapter):
    """A chapter that draws nothing and keeps what it says, in every language."""

    def __init__(self, name: str) -> None:
        self.name, self.shown = name, dict[str, str]()

    def text(self, section: str, **values: Any) -> None:
        self.shown |= {language: load_words(self.name, language)(section, **values) for language in languages()}


@pytest.fixture
def shown(request: pytest.FixtureRequest) -> dict[str, str]:
    chapter, shows, *more = request.param
    sheet = Sheet(chapter)
    shows(sheet, *more)
    return sheet.shown


INPUTS = SizeInputs(LayerSizes(12, 64, 3, 4), 0, 1, ("the", "cat"))


@pytest.mark.parametrize(
    ("shown", "numbers"),
    [
        (("architectures", architectures.long_inputs, INPUTS), ("80,000,000,000", "10,000", "320 GB")),
        (("architectures", architectures.cheaper), ("262,144", "4,096", "0.00")),
    ],
    indirect=["shown"],
)
def test_what_an_exercise_shows_is_whole(shown: dict[str, str], numbers: tuple[str, ...]) -> None:
    assert set(shown) == set(languages())
    for language, text in shown.items():
        assert not re.search(r"\{\w+\}|\bnan\b|\bNone\b", text), language
    for number in numbers:
        assert number in shown["en"]
