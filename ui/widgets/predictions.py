"""Predict, then reveal: a question, a reply of its own to each answer, and why; by choosing or by drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from ui.text.words import Words
from ui.widgets.component import component
from ui.widgets.draw_on_figure import OnFigure
from ui.widgets.query_param import in_address
from ui.widgets.sketch import Board, Numbers, fractions
from viz_core.figures.style import ACCENT, CATEGORIES

_mount = component("sketch")

# A line "- [x] answer" or "- [mistake] reply", and under a wrong choice its reply, indented.
_ANSWER = re.compile(r"^- \[([^\]]+)\] (.+)((?:\n  > .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """What readers may answer: the right one ("x"), a wrong one (" "), or a mistake that has a name."""

    mark: str
    text: str
    reply: str


@dataclass(frozen=True)
class Prediction:
    """A question, its answers, and why the right one is right."""

    question: str
    answers: tuple[Answer, ...]
    why: str

    def say(self, common: Words, answer: Answer) -> str:
        """What a reader is told who gave this answer."""
        right = answer.mark == "x"
        return " ".join(part for part in (common("right" if right else "wrong"), answer.reply, self.why) if part)


@dataclass(frozen=True, eq=False)
class Truth:
    """What comes out, and what comes out for who makes a known mistake."""

    values: Numbers
    mistakes: Mapping[str, Numbers] = field(default_factory=dict)


def read_prediction(text: str) -> Prediction:
    """A prediction as the words of a chapter write it.

    Raises:
        ValueError: if not exactly one answer is right.
    """
    answers = tuple(
        Answer(mark, said.strip(), " ".join(line.strip(" >") for line in reply.strip().splitlines()))
        for mark, said, reply in _ANSWER.findall(text)
    )
    if sum(answer.mark == "x" for answer in answers) != 1:
        raise ValueError(f"a prediction needs exactly one right answer, got {answers}")
    why = "\n".join(re.findall(r"^> ?(.*)$", text, flags=re.MULTILINE))
    return Prediction(text.split("\n- [")[0].strip(), answers, why)


def choose(common: Words, prediction: Prediction, key: str) -> bool:
    """One of a few answers, in the address by its number; the reply comes once one is chosen, and whether one is."""
    choices = {answer.text: answer for answer in prediction.answers}
    texts = list(choices)
    numbers = {text.casefold(): text for text in texts} | {str(i): text for i, text in enumerate(texts, 1)}
    guess, _ = in_address(
        key,
        None,
        lambda asked: numbers.get(asked[-1].casefold()),
        lambda text: (str(texts.index(text) + 1),) if text else (),
        lambda text: text is None or text in choices,
        lambda begin: st.radio(
            prediction.question,
            texts,
            None if begin is None else texts.index(begin),
            key=key,
            label_visibility="collapsed",
        ),
    )
    if guess is not None:
        st.markdown(prediction.say(common, choices[guess]))
    return guess is not None


def draw(
    common: Words,
    prediction: Prediction,
    key: str,
    board: Board,
    truth: Callable[[], Truth],
    on: OnFigure | None = None,
) -> None:
    """A drawing, told in the address once it is revealed; the truth is computed and sent only then.

    Args:
        on: the figure it is drawn on; on a board of its own unless given.
    """

    def told() -> None:
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
        "over": None if on is None else {"figure": f"figure-{on.figure}", "axes": list(on.axes), "cells": on.cells},
        "guess": "" if guess is None else text,
        "truth": None if answer is None else board.levels(answer.values),
        "places": fractions(board.places, board.places[0], board.places[-1]),
        "x": [board.places[0], board.places[-1]],
        "y": [board.low, board.high],
        "points": [
            [*fractions([x], board.places[0], board.places[-1]), *fractions([y], board.low, board.high)]
            for x, y in board.points
        ],
        "names": list(board.names),
        "titles": [board.x_title, board.y_title],
        "colours": {"guess": CATEGORIES[3], "truth": ACCENT, "points": CATEGORIES[2]},
        "words": {
            **{name: common(f"sketch.{name}") for name in ("reveal", "again", "yours", "truth")},
            "label": common(f"sketch.{board.kind}"),
            "hint": common(_hint(board, on)),
        },
    }
    _mount(key=f"{key}-board", data=data, on_guess_change=told)
    if guess is not None and answer is not None:
        mark = board.judge(guess, answer.values, answer.mistakes)
        reply = next(each for each in prediction.answers if each.mark == mark)
        said = prediction.say(common, Answer(mark, "", reply.text))
        st.markdown(f"{_score(common, board, guess, answer.values)} {said}")


def _hint(board: Board, on: OnFigure | None) -> str:
    """How to draw, by name: on a figure weights are bars that lie, or cells to shade."""
    if on is None or board.kind != "weights":
        return f"sketch.hint-{board.kind}"
    return "sketch.hint-cells" if on.cells else "sketch.hint-bars"


def _score(common: Words, board: Board, guess: Numbers, truth: Numbers) -> str:
    """How near it came, in the picture's own numbers."""
    off = board.distance(guess, truth)
    flat = board.distance(np.full_like(truth, truth.mean()), truth)
    values = {"off": f"{off:.2f}", "flat": f"{flat:.2f}", "share": f"{1 - off:.0%}"}
    return common(f"sketch.score-{board.kind}", **values)
