"""The guided tour: steps through the chapters, each a link that sets the page's state, and a question about it.

The steps are in assets/tour/steps.toml, their questions in the words of the tour. A bar at the bottom of the window
(assets/components/tour) asks, hides what answers it until the reader has guessed, and links one step to the next;
`?tour=3` in the URL shows it at the third.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlencode

import streamlit as st

from ui.chapter.contents import page
from ui.text.markdown import escape, plain_text
from ui.text.words import load_words
from ui.widgets.component import component
from ui.widgets.predictions import Prediction, read_prediction
from viz_core.runtime.assets import ASSETS, reading

STEPS = ASSETS / "tour" / "steps.toml"
_PARAMETER = "tour"
_mount = component("tour", in_page=True)


@dataclass(frozen=True)
class Step:
    """One step of the tour.

    Attributes:
        number: from 1.
        name: of its words.
        chapter: that it is in.
        place: key of the element that the step is about.
        state: the page's query parameters.
        part: of the place, shown where the window is too low for all of it; "" for its beginning.
        hides: CSS selectors of what in the place answers the question; all of it if there are none.
        also: CSS selectors of what else on the page answers it.
    """

    number: int
    name: str
    chapter: str
    place: str
    state: Mapping[str, str]
    part: str = ""
    hides: Sequence[str] = ()
    also: Sequence[str] = ()

    @property
    def address(self) -> dict[str, str]:
        """Query parameters of a link to this step."""
        return {_PARAMETER: str(self.number), **self.state}

    @property
    def link(self) -> str:
        """Link to this step, relative to any page."""
        return f"{self.chapter}?{urlencode(self.address)}"

    def question(self, language: str | None = None) -> Prediction:
        """The question, its answers, and what the page shows then; in the reader's language unless one is given."""
        return read_prediction(load_words("tour", language)(f"step.{self.name}"))


@lru_cache(maxsize=1)
def steps() -> tuple[Step, ...]:
    """Return the steps of the tour.

    Raises:
        AssetError: if its file is missing or damaged.
    """
    with reading(STEPS):
        rows = tomllib.loads(STEPS.read_text(encoding="utf-8"))["step"]
        return tuple(Step(number, **row) for number, row in enumerate(rows, start=1))


def requested_step(chapter: str, number: str | None) -> Step | None:
    """Return the step of this chapter that the URL requests; None without a request or such a step."""
    return next((step for step in steps() if str(step.number) == number and step.chapter == chapter), None)


def mount_tour(chapter: str) -> None:
    """Mount the button that starts the tour, and its bar while the tour is on."""
    words = load_words("tour")
    is_on = requested_step(chapter, st.query_params.get(_PARAMETER)) is not None
    common = load_words("common")
    replies = {name: plain_text(common(name)) for name in ("right", "wrong")}
    sent = [_sent(step) for step in (steps() if is_on else steps()[:1])]
    data = {"chapter": chapter, "words": words.group("bar") | replies, "count": len(steps()), "steps": sent}
    _mount(key="tour", data=json.dumps(data).encode())  # bytes: for a dictionary Streamlit imports pandas


def _sent(step: Step) -> dict[str, object]:
    """What the bar needs of a step."""
    question = step.question()
    return {
        "chapter": step.chapter,
        "link": step.link,
        "place": step.place,
        "part": step.part,
        "hides": step.hides,
        "also": step.also,
        "question": question.question,
        "answers": [answer.text for answer in question.answers],
        "right": [answer.mark for answer in question.answers].index("x"),
        "shown": question.why,
    }


def report_unknown_step(chapter: str) -> None:
    """Draw a message if the URL requests a step that this chapter does not have, and remove the request."""
    requested = st.query_params.get(_PARAMETER)
    if requested is None or requested_step(chapter, requested) is not None:
        return
    st.caption(load_words("tour")("no-step", asked=escape(requested[:40]), count=len(steps())))
    del st.query_params[_PARAMETER]


def tour_link() -> None:
    """Draw the link to the tour's first step."""
    words, first = load_words("tour"), steps()[0]
    with st.container(key="tour-link"):
        label, about = words("begin"), words("invitation", count=len(steps()))
        link = page(first.chapter)
        st.page_link(link, label=label, icon=":material/tour:", query_params=first.address, help=about)
