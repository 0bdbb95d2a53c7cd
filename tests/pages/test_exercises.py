"""What the book's exercises show once they are answered: every number is filled in, in every language."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pages.architectures import parts as architectures
from pages.architectures.parts import SizeInputs
from ui.chapter.chapter import Chapter
from ui.text.words import languages, load_words
from viz_core.lessons.architectures.costs import LayerSizes


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
