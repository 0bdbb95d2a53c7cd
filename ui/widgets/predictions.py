"""Predictions: a question, a reply to each answer, and the reason; answered by choosing or by drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import streamlit as st

from ui.text.markdown import join_sentences, plain_text
from ui.text.words import Words
from ui.widgets.component import component
from ui.widgets.draw_on_figure import OnFigure
from ui.widgets.figure_style import CATEGORIES
from ui.widgets.query_param import in_address
from ui.widgets.sketch import Board, Numbers, fractions

_mount = component("sketch")

# A line "- [x] answer" or "- [mistake] reply", and under a wrong choice its reply, indented.
_ANSWER = re.compile(r"^- \[([^\]]+)\] (.+)((?:\n  > .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """An answer: the right one ("x"), a wrong one (" "), or a named mistake."""

    mark: str
    text: str
    reply: str


@dataclass(frozen=True)
class Prediction:
    """A question, its answers, and the reason for the right one."""

    question: str
    answers: tuple[Answer, ...]
    why: str

    @property
    def without_reason(self) -> Prediction:
        """The same question and replies, whose reason is shown by itself."""
        return replace(self, why="")

    def reply(self, common: Words, number: int, drawn: bool = False) -> str:
        """Return the full reply to an answer: right or wrong, its own reply, and the reason.

        Args:
            drawn: whether the reader drew; then the text of an answer is the reply to drawings like it.
        """
        answer = self.answers[number]
        own = answer.text if drawn else answer.reply
        parts = (common("right" if answer.mark == "x" else "wrong"), own, self.why)
        return join_sentences(part for part in parts if part)


@dataclass(frozen=True, eq=False)
class Truth:
    """The true values, and those that known mistakes lead to."""

    values: Numbers
    mistakes: Mapping[str, Numbers] = field(default_factory=dict)


def read_prediction(text: str) -> Prediction:
    """Parse a prediction from a chapter's words.

    Raises:
        ValueError: if not exactly one answer is right.
    """
    answers = tuple(
        Answer(mark, answer.strip(), " ".join(line.strip(" >") for line in reply.strip().splitlines()))
        for mark, answer, reply in _ANSWER.findall(text)
    )
    if sum(answer.mark == "x" for answer in answers) != 1:
        raise ValueError(f"a prediction needs exactly one right answer, got {answers}")
    why = "\n".join(re.findall(r"^> ?(.*)$", text, flags=re.MULTILINE))
    return Prediction(text.split("\n- [")[0].strip(), answers, why)


def draw_choices(common: Words, prediction: Prediction, key: str) -> bool:
    """Draw the answers, and the reply once one is chosen; return whether one is. The URL holds its number."""
    texts = [answer.text for answer in prediction.answers]
    numbers = {text.casefold(): text for text in texts} | {str(i): text for i, text in enumerate(texts, 1)}
    guess, _ = in_address(
        key,
        None,
        lambda requested: numbers.get(requested[-1].casefold()),
        lambda text: (str(texts.index(text) + 1),) if text else (),
        lambda text: text is None or text in texts,
        lambda begin: st.radio(
            plain_text(prediction.question),  # read aloud, not shown
            texts,
            None if begin is None else texts.index(begin),
            key=key,
            label_visibility="collapsed",
        ),
    )
    if guess is not None:
        st.markdown(prediction.reply(common, texts.index(guess)))
    return guess is not None


def draw_board(
    common: Words,
    prediction: Prediction,
    key: str,
    truth: Callable[[], Truth],
    on: OnFigure,
) -> None:
    """Draw the board on its figure. The URL holds a drawing once its answer is revealed; then `truth` is called."""
    board = on.board

    def revealed() -> None:
        text = st.session_state[f"{key}-board"].guess
        if board.read(text) is not None:
            st.query_params[key] = text
        elif key in st.query_params:
            del st.query_params[key]

    text = st.query_params.get(key)
    guess = board.read(text)
    answer = truth() if guess is not None else None
    data = {
        "kind": board.kind,
        "over": {"figure": f"figure-{on.figure}", "axes": list(on.axes), "cells": on.cells},
        "guess": "" if guess is None else text,
        "truth": None if answer is None else board.levels(answer.values),
        "places": fractions(board.places, board.places[0], board.places[-1]),
        "x": [board.places[0], board.places[-1]],
        "y": [board.low, board.high],
        "names": list(board.names),
        "language": common.language,
        "colour": CATEGORIES[3],
        "words": {
            **{name: common(f"sketch.{name}") for name in ("reveal", "again", "yours")},
            "label": common(f"sketch.{board.kind}"),
            "hint": common(_hint(on)),
        },
    }
    _mount(key=f"{key}-board", data=data, on_guess_change=revealed)
    if guess is not None and answer is not None:
        mark = board.judge(guess, answer.values, answer.mistakes)
        number = next(i for i, each in enumerate(prediction.answers) if each.mark == mark)
        text = prediction.reply(common, number, drawn=True)
        st.markdown(f"{_score(common, board, guess, answer.values)} {text}")


def _hint(on: OnFigure) -> str:
    """Return the section that explains how to draw; weights are horizontal bars, or cells to shade."""
    if on.board.kind != "weights":
        return f"sketch.hint-{on.board.kind}"
    return "sketch.hint-cells" if on.cells else "sketch.hint-bars"


def _score(common: Words, board: Board, guess: Numbers, truth: Numbers) -> str:
    """Return the sentence on the drawing's error, in the figure's units."""
    error = board.distance(guess, truth)
    flat = board.distance(np.full_like(truth, truth.mean()), truth)
    values = {"off": f"{error:.2f}", "flat": f"{flat:.2f}", "share": f"{1 - error:.0%}"}
    return common(f"sketch.score-{board.kind}", **values)
