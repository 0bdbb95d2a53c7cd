"""Answers of a question: radio buttons and, where the question is about a figure, the figure's own marks.

A mark is a bar, a cell, a row, a curve, a head's thumbnail: any part of a figure. It is chosen by a click, or by arrow
keys and Enter; the radio buttons say the same in words.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import streamlit as st

from ui.text.markdown import join_sentences, plain_text
from ui.text.words import Words
from ui.widgets.component import component
from ui.widgets.predictions import Prediction
from ui.widgets.query_param import in_address

_mount = component("marks")


@dataclass(frozen=True)
class Mark:
    """A part of a figure that stands for an answer.

    Attributes:
        x, y: from and to, in the figure's axes; of a part, or of an axis in `shares`, shares of its length from the
            left and from the top.
        part: selects the element that is meant, or that x and y are shares of: a cell of a table, a thumbnail, a
            canvas; "" for a plotly figure.
        shares: "x", "y" or "xy".
    """

    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)
    part: str = ""
    shares: str = ""


@dataclass(frozen=True)
class Marks:
    """Where on a figure the answers are.

    Attributes:
        figure: key of the element that has it.
        answers: a mark for each answer, in order.
        before: values of controls, by name, that the question is about.
        after: those that show the answer, set once the reader has guessed.
    """

    figure: str
    answers: tuple[Mark, ...]
    before: Mapping[str, object] = field(default_factory=dict)
    after: Mapping[str, object] = field(default_factory=dict)


def draw_choices(
    common: Words, prediction: Prediction, key: str, marks: Marks | None, name_of: Callable[[str], str]
) -> bool:
    """Draw the answers, and the reply once one is chosen; return whether one is. The URL holds its number.

    Args:
        name_of: returns the key of a control, by its name in `marks`.
    """
    texts = [answer.text for answer in prediction.answers]
    numbers = {text.casefold(): text for text in texts} | {str(i): text for i, text in enumerate(texts, 1)}

    def set_controls(values: Mapping[str, object]) -> None:
        for name, value in values.items():
            st.session_state[name_of(name)] = value

    def show_answer() -> None:
        if marks is not None and st.session_state[key] is not None:
            set_controls(marks.after)

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
            on_change=show_answer,
        ),
    )
    number = None if guess is None else texts.index(guess)
    if marks is not None:

        def acted() -> None:
            action = st.session_state[f"{key}-marks"].action
            if action == "open":
                st.session_state[key] = None
                set_controls(marks.before)
            elif isinstance(action, int) and 0 <= action < len(texts):
                st.session_state[key] = texts[action]
                show_answer()

        shown = all(st.session_state.get(name_of(name)) == value for name, value in marks.after.items())
        _mount(
            key=f"{key}-marks", data=_sent(common, prediction, marks, number if shown else None), on_action_change=acted
        )
    if number is not None:
        st.markdown(prediction.reply(common, number))
    return number is not None


def _sent(common: Words, prediction: Prediction, marks: Marks, guess: int | None) -> bytes:
    """What the browser draws: the marks and, after the guess, which is right and the verdict."""
    answers = prediction.answers
    right, verdict = None, ""
    if guess is not None:
        right = [answer.mark for answer in answers].index("x")
        reply = answers[guess].text if guess == right else answers[guess].reply
        verdict = join_sentences(filter(None, (common("right" if guess == right else "wrong"), reply)))
    return json.dumps(
        {
            "figure": marks.figure,
            "marks": [
                {**vars(mark), "label": plain_text(answer.text)}
                for mark, answer in zip(marks.answers, answers, strict=True)
            ],
            "question": plain_text(prediction.question),
            "guess": guess,
            "right": right,
            "verdict": plain_text(verdict),
            "words": {"open": common("marks.open")},
        },
        ensure_ascii=False,
    ).encode()
