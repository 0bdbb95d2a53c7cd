"""The exercises of a page, whose answer is revealed after a prediction, and the questions that are asked again later.

Two questions on a chapter that teaches are asked at its end, at the start of the third chapter after it, and on a page
of their own. What a reader knows stays in the browser; assets/components/review/main.js says when a question is due.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.chapter.contents import all_chapters
from ui.chapter.parts import Content
from ui.text.markdown import after_label, join_sentences
from ui.text.words import ENGLISH, Words, load_words
from ui.widgets.choices import Marks, draw_choices
from ui.widgets.component import component
from ui.widgets.predictions import OnFigure, Prediction, Truth, draw_board, read_prediction

_mount_why = component("why")
_OF_BOOK = re.compile(r"\[([\d.]+)\.(\d+)\] *")  # before the text of an exercise of the book: [SECTION.NUMBER]


class Exercises(Content):
    """The exercises of one page; the URL holds each answer.

    After the first one's answer the reader is asked why, and compares a sentence of their own with the reason.
    """

    _explained: str | None = None
    _is_folded = False  # the takeaways, once they are drawn
    _question_place: DeltaGenerator | None = None  # of the exercise that is about the last card

    def exercise(
        self, name: str, collapsed: bool = False, reveal: Callable[[], None] | None = None, marks: Marks | None = None
    ) -> None:
        """Draw a multiple-choice question: `exercise.NAME` has the question, the answers with replies, and the reason.

        An answer is a line `- [ ]`, the right one `- [x]`; the reply to a wrong one is below it, indented, after `>`;
        the reason, shown with every answer, is at the end, after `>`.

        Args:
            collapsed: draw it as a closed expander, above a figure that must stay in view.
            reveal: draws the experiment that decides the question, below the reply, once the reader has chosen.
            marks: the parts of a figure that stand for the answers.
        """
        with self._prediction(name, collapsed) as prediction:
            chosen = draw_choices(self.common, prediction, self._key(name), marks, self.controls.key)
            if chosen and reveal is not None:
                reveal()
        if chosen and name == self._explained and self._is_folded:  # in a fragment, which does not draw the takeaways
            st.rerun()

    def marks_answer(self, name: str, marks: Marks) -> bool:
        """Whether a figure shows the marks of the answer: the reader has chosen, and the controls are set for it."""
        values = {self.controls.key(setting): value for setting, value in marks.after.items()}
        chosen = bool(st.query_params.get(self._key(name)))
        return chosen and all(st.session_state.get(key) == value for key, value in values.items())

    def takeaways(self) -> None:
        """Draw what to remember, folded until the page's first prediction is made: it may say what that is about."""
        if self._question_place is not None:  # the card asks nothing now: what breaks it need not wait for a question
            self._question_place.html("<span></span>")
        guessed = self._explained is None or bool(st.query_params.get(self._key(self._explained)))
        self._is_folded = not guessed
        key = "takeaways-fold-open" if guessed else "takeaways-fold"  # under one key a fold keeps its state
        with st.expander(self.common("takeaways"), expanded=guessed, key=key):
            self.frame.takeaways()

    def draw_on_figure(self, name: str, on: OnFigure, truth: Callable[[], Truth]) -> None:
        """Draw a question answered by drawing on a figure, which obeys `hides_answer`: a curve, weights, a star.

        In `exercise.NAME`, `- [x]` is the reply to a drawing close to the truth, `- [MISTAKE]` to one closer to a known
        mistake, and `- [ ]` to all others.

        Args:
            truth: computes the answer and the known mistakes, once the reader has drawn.
        """
        key = self._key(name)
        with self._prediction(name) as prediction:
            label, about = self.common("sketch.on-figure"), self.common("sketch.holds-controls")
            if st.toggle(label, key=_toggle_key(key), bind="query-params", help=about):
                draw_board(self.common, prediction, key, truth, on)

    def hides_answer(self, name: str, on: OnFigure) -> bool:
        """Whether a figure must not show its answer: the reader is drawing it and has not finished.

        Call it before the controls are drawn: it sets them to the exercise's settings at each run while the reader
        draws. Set once by a callback, they would be lost if a fragment reruns at the same moment. Who changes one after
        the answer is done: the drawing goes.
        """
        key, values = self._key(name), {self.controls.key(each): value for each, value in on.settings.items()}
        answered, shown = on.board.read(st.query_params.get(key)) is not None, f"{key}-shown"
        if not self.is_drawn_on(name):
            st.session_state[shown] = False
            return False
        others = {each: value for each, value in values.items() if st.session_state.get(each) != value}
        if others and answered and st.session_state.get(shown):
            st.session_state[_toggle_key(key)] = False
            return False
        for each, value in others.items():
            st.session_state[each] = value
        st.session_state[shown] = answered
        return not answered

    def is_drawn_on(self, name: str) -> bool:
        """Whether the reader draws on a figure or has drawn; before the toggle exists, the URL decides."""
        toggle = _toggle_key(self._key(name))
        return bool(st.session_state.get(toggle, st.query_params.get(toggle) == "true"))

    def _key(self, name: str) -> str:
        return self.controls.key(f"guess-{name}")

    @contextmanager
    def _prediction(self, name: str, collapsed: bool = False) -> Iterator[Prediction]:
        """Draw the question and yield it, inside its container; an expander is open if the URL holds an answer."""
        prediction, key = read_prediction(self.words(f"exercise.{name}")), f"exercise-{name}"
        reason = ""
        if prediction.why and (self._explained or name) == name:
            self._explained, reason, prediction = name, prediction.why, replace(prediction, why="")
        label = after_label(self.common("exercise"), with_source(self.common, prediction.question))
        place, self._question_place = self._question_place or nullcontext(), None
        with (
            place,
            st.expander(label, expanded=self._key(name) in st.query_params, key=key)
            if collapsed
            else st.container(border=True, key=key),
        ):
            if not collapsed:
                st.markdown(label)
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


def with_source(common: Words, question: str) -> str:
    """Return the question; of an exercise of the book, after its number there."""
    found = _OF_BOOK.match(question)
    if found is None:
        return question
    source = common("exercise.book", number=found[2]).replace("{section}", found[1])  # no decimal: 11.3 in any language
    return join_sentences([source, question[found.end() :]])


def _toggle_key(key: str) -> str:
    return f"{key}-drawn"


LATER = 3
"""How many chapters later the questions on a chapter are asked again."""
NUMBERS = ("1", "2")

_IDEA = re.compile(r"\*\*(.+?)[.。]?\*\*\s*")
_mount: Callable[..., Any] = component("review")


def reviewed_chapters() -> list[str]:
    """Return the chapters with questions to remember, in reading order."""
    words = load_words("review", ENGLISH)
    return [chapter for chapter in all_chapters() if words.has(f"{chapter}.{NUMBERS[0]}")]


def chapter_to_repeat(chapter: str) -> str | None:
    """Return the chapter whose questions are asked at the start of this one, if any."""
    order = reviewed_chapters()
    place = order.index(chapter) - LATER if chapter in order else -1
    return order[place] if place >= 0 else None


def draw_review(chapters: Sequence[str], mode: Literal["questions", "overview"], key: str) -> None:
    """Draw the questions on these chapters, or an overview of which ideas are known and which are due."""
    words = load_words("review")
    data = {
        "mode": mode,
        "language": words.language,
        "words": words.group("view"),
        "chapters": [
            {
                "name": name,
                "title": load_words(name).menu,
                "questions": [_question(words, f"{name}.{number}") for number in NUMBERS],
            }
            for name in chapters
        ],
    }
    _mount(key=key, data=json.dumps(data).encode())


def _question(words: Words, name: str) -> dict[str, Any]:
    """Return a question for the browser: its idea, its text and its answers."""
    prediction = read_prediction(words(name))
    return {
        "id": name,
        "idea": idea_of(prediction.question),
        "text": _IDEA.sub("", prediction.question, count=1),
        "answers": [
            {"right": answer.mark == "x", "text": answer.text, "reply": answer.reply} for answer in prediction.answers
        ],
    }


def idea_of(question: str) -> str:
    """Return the idea that a question is about: the bold words that it begins with.

    Raises:
        ValueError: if it begins with none.
    """
    found = _IDEA.match(question)
    if found is None:
        raise ValueError(f"a question begins with its idea in bold, got {question!r}")
    return found[1]
