"""Predictions: a question, a reply to each answer, and the reason; answered by choosing (choices.py) or by drawing.

A drawing is a curve, a row of weights or a star, on a figure of the page that hides its answer until the reader has
drawn; its distance from the truth and from known mistakes decides the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import streamlit as st
from jaxtyping import Float

from ui.text.markdown import join_sentences, plain_text
from ui.text.words import Words
from ui.widgets.component import component
from ui.widgets.figure_style import ACCENT, WEIGHTS

TOP = 99
"""A drawing is encoded for the URL in levels of two digits, 00 at the bottom of the board and 99 at its top."""

# The largest distance that counts as right: a share of the board's height, of the weight, of its diagonal.
_TOLERANCE = {"curve": 0.05, "weights": 0.12, "star": 0.06}

Numbers = Float[np.ndarray, "numbers"]


@dataclass(frozen=True)
class Board:
    """What a reader draws on.

    Attributes:
        kind: "curve", a height at each place; "weights", a share for each name; "star", one point in the plane.
        places: x of the curve's heights; for a star the limits of the x axis.
        low, high: limits of the y axis.
        names: of the weights.
    """

    kind: Literal["curve", "weights", "star"]
    places: tuple[float, ...] = (0.0, 1.0)
    low: float = 0.0
    high: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of values in a drawing."""
        return {"curve": len(self.places), "weights": len(self.names), "star": 2}[self.kind]

    @property
    def _spans(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (self.places[0], self.places[-1]), (self.low, self.high)

    def levels(self, values: Numbers) -> list[float]:
        """Return values as levels, 0 to 99 within the board; weights as shares."""
        if self.kind == "weights":
            return [float(share) for share in values]
        spans = self._spans if self.kind == "star" else (self._spans[1],) * len(values)
        return [round(TOP * (float(v) - low) / (high - low), 2) for v, (low, high) in zip(values, spans, strict=True)]

    def read(self, text: str | None) -> Numbers | None:
        """Return the drawing encoded in digits; None if they encode none."""
        if text is None or not re.fullmatch(rf"[0-9]{{{2 * self.count}}}", text):
            return None
        levels = np.array([int(text[i : i + 2]) for i in range(0, len(text), 2)], dtype=np.float64)
        if self.kind == "weights":
            return levels / levels.sum() if levels.sum() else None
        spans = np.array(self._spans if self.kind == "star" else (self._spans[1],) * self.count)
        return spans[:, 0] + levels / TOP * (spans[:, 1] - spans[:, 0])

    def distance(self, one: Numbers, other: Numbers) -> float:
        """Return the distance of two drawings: mean |a - b| of curves, sum |a - b| / 2 of weights, |a - b| of stars."""
        if self.kind == "curve":
            return float(np.abs(one - other).mean())
        return float(np.abs(one - other).sum() / 2 if self.kind == "weights" else np.linalg.norm(one - other))

    def judge(self, guess: Numbers, truth: Numbers, mistakes: Mapping[str, Numbers]) -> str:
        """Return "x" if a guess is close to the truth, a mistake's name if it is twice as close to that, else " "."""
        (left, right), (low, high) = self._spans
        size = {"curve": high - low, "weights": 1.0, "star": float(np.hypot(right - left, high - low))}[self.kind]
        error = self.distance(guess, truth)
        if error <= _TOLERANCE[self.kind] * size:
            return "x"
        distances = {name: self.distance(guess, values) for name, values in mistakes.items()}
        closest = min(distances, key=lambda name: distances[name], default=" ")
        return closest if distances.get(closest, error) < error / 2 else " "


@dataclass(frozen=True)
class OnFigure:
    """What is drawn on which figure.

    Attributes:
        board: in the figure's axes; weights are horizontal bars, the first on top, or a row of cells.
        figure: its name on the page.
        settings: values of controls, by name, that the exercise is about.
        cells: whether weights are the cells of one row instead of bars.
    """

    board: Board
    figure: str
    settings: Mapping[str, object]
    cells: bool = False


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


def draw_board(common: Words, prediction: Prediction, key: str, truth: Callable[[], Truth], on: OnFigure) -> None:
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
    verdict, reply, on_figure = "", "", ""
    if guess is not None and answer is not None:
        mark = board.judge(guess, answer.values, answer.mistakes)
        number = next(i for i, each in enumerate(prediction.answers) if each.mark == mark)
        verdict = _score(common, board, guess, answer.values)
        on_figure = plain_text(f"{common('right' if mark == 'x' else 'wrong')} {verdict}")
        reply = prediction.reply(common, number, drawn=True)
    left, right = board.places[0], board.places[-1]
    data = {
        "kind": board.kind,
        "over": {"figure": f"figure-{on.figure}", "cells": on.cells},
        "guess": "" if guess is None else text,
        "verdict": on_figure,
        "truth": None if answer is None else board.levels(answer.values),
        "places": [round((place - left) / (right - left), 4) for place in board.places],
        "x": [left, right],
        "y": [board.low, board.high],
        "names": list(board.names),
        "language": common.language,
        "colour": WEIGHTS if board.kind == "weights" else ACCENT,  # of the truth; a guess is drawn in ink
        "words": {
            **{name: common(f"sketch.{name}") for name in ("reveal", "again", "yours")},
            "label": common(f"sketch.{board.kind}"),
            "hint": common(_hint(on)),
        },
    }
    _mount(key=f"{key}-board", data=data, on_guess_change=revealed)
    if reply:
        st.markdown(f"{verdict} {reply}")


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
