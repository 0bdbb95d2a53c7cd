"""The exercises of a page: the reader predicts, by choosing or by drawing, and then the answer is revealed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from ui.text.markdown import after_label
from ui.text.words import Words
from ui.widgets.component import component
from ui.widgets.controls import Controls
from ui.widgets.draw_on_figure import OnFigure, drawing_toggle, figure_hides_answer, figure_is_drawn_on
from ui.widgets.predictions import Prediction, Truth, draw_board, draw_choices, read_prediction

_mount_why = component("why")


class Exercises:
    """The exercises of one page; the URL holds each answer.

    After the first one's answer the reader is asked why, and compares a sentence of their own with the reason.
    """

    def __init__(self, words: Words, common: Words, controls: Controls) -> None:
        self.words, self.common, self.controls = words, common, controls
        self._explained: str | None = None

    def exercise(self, name: str, collapsed: bool = False, reveal: Callable[[], None] | None = None) -> None:
        """Draw a multiple-choice question: `exercise.NAME` has the question, the answers with replies, and the reason.

        An answer is a line `- [ ]`, the right one `- [x]`; the reply to a wrong one is below it, indented, after `>`;
        the reason, shown with every answer, is at the end, after `>`.

        Args:
            collapsed: draw it as a closed expander, above a figure that must stay in view.
            reveal: draws the experiment that decides the question, below the reply, once the reader has chosen.
        """
        with self._prediction(name, collapsed) as prediction:
            if draw_choices(self.common, prediction, self._key(name)) and reveal is not None:
                reveal()

    def draw_on_figure(self, name: str, on: OnFigure, truth: Callable[[], Truth]) -> None:
        """Draw a question answered by drawing on a figure, which obeys `hides_answer`: a curve, weights, a star.

        In `exercise.NAME`, `- [x]` is the reply to a drawing close to the truth, `- [MISTAKE]` to one closer to a known
        mistake, and `- [ ]` to all others.

        Args:
            truth: computes the answer and the known mistakes, once the reader has drawn.
        """
        key = self._key(name)
        with self._prediction(name) as prediction:
            if drawing_toggle(self.common, key):
                draw_board(self.common, prediction, key, truth, on)

    def hides_answer(self, name: str, on: OnFigure) -> bool:
        """Whether a figure must not show its answer yet, as the reader is drawing it; call it before the controls."""
        return figure_hides_answer(self.controls, self._key(name), on)

    def is_drawn_on(self, name: str) -> bool:
        """Whether a figure shows what a question is about: the reader draws on it or has drawn."""
        return figure_is_drawn_on(self._key(name))

    def _key(self, name: str) -> str:
        return self.controls.key(f"guess-{name}")

    @contextmanager
    def _prediction(self, name: str, collapsed: bool = False) -> Iterator[Prediction]:
        """Draw the question and yield it, inside its container; an expander is open if the URL holds an answer."""
        prediction, key = read_prediction(self.words(f"exercise.{name}")), f"exercise-{name}"
        reason = ""
        if prediction.why and (self._explained or name) == name:
            self._explained, reason, prediction = name, prediction.why, prediction.without_reason
        label = self.common("exercise")
        if collapsed:
            with st.expander(
                after_label(label, prediction.question), expanded=self._key(name) in st.query_params, key=key
            ):
                yield prediction
                self._ask_why(name, reason)
            return
        with st.container(border=True, key=key):
            st.markdown(after_label(label, prediction.question))
            yield prediction
            self._ask_why(name, reason)

    def _ask_why(self, name: str, reason: str) -> None:
        """Once the answer is there, draw a box for the reader's own sentence, and the reason, shown when compared."""
        if not reason or not st.query_params.get(self._key(name)):
            return
        key = f"reason-of-{self._key(name)}"
        data = {"name": self._key(name), "reason": key, "words": self.common.group("why")}
        box = st.container()  # above the reason, which must be there when the box is mounted
        with st.container(key=key):
            st.markdown(reason)
        with box:
            _mount_why(key=f"why-{self._key(name)}", data=json.dumps(data).encode())
