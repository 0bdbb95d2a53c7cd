"""The guided tour: steps through the chapters, each a link that sets the page's own state, and a sentence.

The steps stand in assets/tour/steps.toml, their sentences in the words of the tour. A bar at the foot of the window
(assets/components/tour) leads from one to the next; `?tour=3` in the address shows it at the third.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlencode

import streamlit as st

from ui.chapter.contents import page
from ui.text.markdown import escape
from ui.text.words import load_words
from ui.widgets.component import component
from viz_core.runtime.assets import ASSETS, reading

STEPS = ASSETS / "tour" / "steps.toml"
_PARAMETER = "tour"
_mount = component("tour", in_page=True)


@dataclass(frozen=True)
class Step:
    """One step of the tour.

    Attributes:
        number: from 1.
        name: of its sentence.
        chapter: where it is.
        place: the key of what the reader shall look at there.
        state: of the page, as its address says it.
    """

    number: int
    name: str
    chapter: str
    place: str
    state: Mapping[str, str]

    @property
    def address(self) -> dict[str, str]:
        """The parameters of a link to this step."""
        return {_PARAMETER: str(self.number), **self.state}

    @property
    def link(self) -> str:
        """Relative to any page."""
        return f"{self.chapter}?{urlencode(self.address)}"


@lru_cache(maxsize=1)
def steps() -> tuple[Step, ...]:
    """The whole tour.

    Raises:
        AssetError: if its file is missing or damaged.
    """
    with reading(STEPS):
        rows = tomllib.loads(STEPS.read_text(encoding="utf-8"))["step"]
        return tuple(
            Step(number, row["name"], row["chapter"], row["place"], row["address"])
            for number, row in enumerate(rows, start=1)
        )


def requested_step(chapter: str, asked: str | None) -> Step | None:
    """The step of this chapter that an address asks for; None where it asks for none, or for one that is not there."""
    return next((step for step in steps() if str(step.number) == asked and step.chapter == chapter), None)


def mount_tour(chapter: str) -> None:
    """The way into the tour, and on it the bar."""
    words = load_words("tour")
    on_it = requested_step(chapter, st.query_params.get(_PARAMETER)) is not None
    told = [
        {"chapter": step.chapter, "link": step.link, "place": step.place, "says": words(f"step.{step.name}")}
        for step in (steps() if on_it else steps()[:1])
    ]
    data = {"chapter": chapter, "words": words.group("bar"), "count": len(steps()), "steps": told}
    _mount(key="tour", data=json.dumps(data, ensure_ascii=False).encode())  # for a dictionary Streamlit imports pandas


def report_unknown_step(chapter: str) -> None:
    """A sentence where the address asks for a step that is not in this chapter; the page is as without it."""
    asked = st.query_params.get(_PARAMETER)
    if asked is None or requested_step(chapter, asked) is not None:
        return
    st.caption(load_words("tour")("no-step", asked=escape(asked[:40]), count=len(steps())))
    del st.query_params[_PARAMETER]


def tour_card() -> None:
    """What the tour is, and the link to its first step."""
    words, first = load_words("tour"), steps()[0]
    with st.container(border=True, key="tour-card"):
        st.markdown(words("invitation", count=len(steps())))
        st.page_link(page(first.chapter), label=words("begin"), icon=":material/tour:", query_params=first.address)
