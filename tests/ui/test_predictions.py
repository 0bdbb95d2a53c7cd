"""Predictions, answered by choosing or by drawing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import isfunction, signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.chapter.contents import all_chapters, folder, page_file
from ui.text.words import ENGLISH, load_words
from ui.widgets.predictions import TOP, Board, OnFigure, Truth, read_prediction

WRITTEN = """How many?
Count.
- [ ] one
  > One is
  > too few.
- [x] two
> Two it is.
> Always."""

PREDICTIONS = [
    (chapter, name)
    for chapter in all_chapters()[1:]
    for name in load_words(chapter, ENGLISH).sections
    if name.startswith("exercise.")
]


def test_a_prediction_is_read_as_it_is_written() -> None:
    read = read_prediction(WRITTEN)
    assert read.question == "How many?\nCount."
    assert [(each.mark, each.text, each.reply) for each in read.answers] == [
        (" ", "one", "One is too few."),
        ("x", "two", ""),
    ]
    assert read.why == "Two it is.\nAlways."
    for text in ("Why?\n- [ ] a\n> b", "Why?\n- [x] a\n- [x] b"):
        with pytest.raises(ValueError, match="exactly one right answer"):
            read_prediction(text)


@pytest.mark.parametrize(("chapter", "name"), PREDICTIONS)
def test_a_wrong_answer_has_a_reply_of_its_own(chapter: str, name: str) -> None:
    read = read_prediction(load_words(chapter, ENGLISH)(name))
    assert len(read.answers) > 1
    if any(answer.reply for answer in read.answers):  # chosen: the answer, then the reply
        replies = [answer.reply for answer in read.answers if answer.mark != "x"]
    else:  # drawn: the reply alone, by the mistake
        replies = [answer.text for answer in read.answers]
        assert " " in {answer.mark for answer in read.answers}
        assert len({answer.mark for answer in read.answers}) == len(read.answers)
    assert all(replies)
    assert len(set(replies)) == len(replies)


class RecordedChapter:
    """Stands in for a chapter and notes what it is asked to draw."""

    def __init__(self, chapter: str) -> None:
        self.words = load_words(chapter, ENGLISH)
        self.sketches: list[tuple[str, Board, Callable[[], Truth]]] = []

    def draw_on_figure(self, name: str, on: OnFigure, truth: Callable[[], Truth]) -> None:
        self.sketches.append((name, on.board, truth))


def _sketches() -> Iterator[tuple[str, str, Board, Callable[[], Truth]]]:
    for chapter in all_chapters()[1:]:
        path = page_file(chapter).parent / "parts.py"
        if path.is_file() and "draw_on_figure(" in path.read_text("utf-8"):
            module, recorded = import_module(f"pages.{folder(chapter)}.parts"), RecordedChapter(chapter)
            for draw in vars(module).values():
                if (
                    isfunction(draw)
                    and [*signature(draw).parameters] == ["chapter"]
                    and "draw_on_figure(" in inspect.getsource(inspect.unwrap(draw))
                ):
                    inspect.unwrap(draw)(recorded)
            yield from ((chapter, *sketch) for sketch in recorded.sketches)


SKETCHES = list(_sketches())


@pytest.mark.parametrize(("chapter", "name", "board", "find"), SKETCHES, ids=[f"{s[0]}-{s[1]}" for s in SKETCHES])
def test_who_draws_the_truth_is_right_and_each_mistake_is_known(
    chapter: str, name: str, board: Board, find: Callable[[], Truth]
) -> None:
    """Drawn as a reader draws it: within the picture, in whole levels."""
    truth = find()
    replies = {answer.mark for answer in read_prediction(load_words(chapter, ENGLISH)(f"exercise.{name}")).answers}
    assert replies == {"x", " ", *truth.mistakes}
    for mark, values in {"x": truth.values, **truth.mistakes}.items():
        levels = [TOP * value if board.kind == "weights" else value for value in board.levels(values)]
        drawn = board.read("".join(f"{min(max(round(level), 0), TOP):02}" for level in levels))
        assert drawn is not None
        assert board.judge(drawn, truth.values, truth.mistakes) == mark


CURVE = Board("curve", (0.0, 1.0, 2.0), -1.0, 1.0)
ROW = Board("weights", names=("a", "b", "c"))
STAR = Board("star", (0.0, 4.0), 0.0, 3.0)


@given(st.lists(st.integers(0, 99), min_size=3, max_size=3))
def test_levels_are_shares_of_the_picture_and_come_back(levels: list[int]) -> None:
    read = CURVE.read("".join(f"{level:02}" for level in levels))
    assert read is not None
    assert CURVE.levels(read) == levels
    assert CURVE.read("009933") == pytest.approx([-1, 1, -1 / 3])
    assert ROW.read("102030") == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert STAR.read("9933") == pytest.approx([4, 1])
    assert STAR.levels(np.array([4.0, 1.0])) == [99, 33]
    assert ROW.levels(np.array([0.5, 0.5, 0.0])) == [0.5, 0.5, 0]
    for text in (None, "", "1234", "1234567", "12345x", "١٢٣٤٥٦", "00000\n", " 12345", "<script>"):
        assert CURVE.read(text) is None
    assert ROW.read("000000") is None


def test_distances_by_hand() -> None:
    assert CURVE.distance(np.array([0.0, 0.0, 0.0]), np.array([1.0, -1.0, 0.5])) == pytest.approx(2.5 / 3)
    assert ROW.distance(np.array([1.0, 0.0, 0.0]), np.array([0.25, 0.75, 0.0])) == 0.75
    assert STAR.distance(np.array([0.0, 0.0]), np.array([3.0, 4.0])) == 5


@pytest.mark.parametrize(
    ("guess", "mark"),
    [
        ([0.6, 0.4, 0.0], "x"),
        ([0.9, 0.1, 0.0], "one"),
        ([0.1, 0.0, 0.9], "other"),
        ([0.7, 0.3, 0.0], " "),  # as near to the one as to the truth
    ],
)
def test_a_guess_is_right_or_a_mistake_or_neither(guess: list[float], mark: str) -> None:
    truth = np.array([0.5, 0.5, 0.0])
    mistakes = {"one": np.array([1.0, 0.0, 0.0]), "other": np.array([0.0, 0.0, 1.0])}
    assert ROW.judge(np.array(guess), truth, mistakes) == mark
    assert ROW.judge(np.array([0.0, 1.0, 0.0]), truth, {}) == " "
