"""Go deeper: the optional sections of a page, closed until the reader opens them."""

from collections.abc import Callable, Collection, Mapping

import streamlit as st

from ui.chapter.contents import page
from ui.chapter.exercises import draw_review, reviewed_chapters
from ui.chapter.parts import Content
from ui.text.words import languages, load_words

OPEN_ALL = "open-all"
"""The query parameter that opens every section."""


class Deeper(Content):
    """The optional sections of one page. The URL holds which are open: PREFIX-open-NAME."""

    def deeper(self, sections: Mapping[str, Callable[[], None]]) -> None:
        """Draw a row for each section: `section.NAME` is its title, `summary.NAME` its summary, where there is one.

        A section is drawn once it is open, and reruns by itself when its own controls change. A link to #NAME opens it.
        The last section has two questions on the chapter, where there are any.
        """
        opened = self._opened_by_link(sections)
        keys = [self.controls.key(f"open-{name}") for name in (*sections, "review")]
        with st.container(border=True, key="deeper"):
            with st.container(horizontal=True, vertical_alignment="center", key="deeper-head"):
                st.header(self.common("deeper"), anchor="deeper")
                everything = st.toggle(
                    self.common("deeper-all"), key=OPEN_ALL, bind="query-params", on_change=_open_or_close, args=(keys,)
                )
            for name, draw in sections.items():
                with st.container(key=f"section-{name}"):
                    summary = f"summary.{name}"
                    about = self.words(summary) if self.words.has(summary) else ""
                    label = _label(self.words(f"section.{name}"), about)
                    self.parts.expander(f"open-{name}", label, None, draw, everything or name in opened)
            if self.words.chapter in reviewed_chapters():
                with st.container(key="section-review"):
                    label = _label(self.common("review"), self.common("review.about"))
                    self.parts.expander("open-review", label, None, self._review, everything)

    def any_open(self, sections: Collection[str]) -> bool:
        """Return whether one of these sections was open when the page was drawn, or is to be."""
        return any(st.session_state.get(self.controls.key(f"open-{name}")) for name in sections)

    def _review(self) -> None:
        draw_review([self.words.chapter], "questions", "review")
        st.page_link(page("review"), label=load_words("review").title, icon=":material/arrow_forward:")

    def _opened_by_link(self, sections: Mapping[str, Callable[[], None]]) -> frozenset[str]:
        """Return the sections that a link from before there were sections opens; decided once a visit.

        It names a tab (PREFIX-section=NAME or TITLE; else all open), or sets controls that are in some section.
        """
        visit = self.controls.key("opened-by-link")
        if visit not in st.session_state:
            st.session_state[visit] = self._requested(sections)
        return st.session_state[visit]

    def _requested(self, sections: Mapping[str, Callable[[], None]]) -> frozenset[str]:
        former, prefix = self.controls.key("section"), self.controls.key("")
        if former in st.query_params:
            names = {name: name for name in sections}
            for language in languages():
                words = load_words(self.words.chapter, language)
                names |= {words(f"section.{name}").casefold(): name for name in sections}
            named = names.get(st.query_params[former].casefold())
            return frozenset(sections if named is None else {named})
        own = [name for name in st.query_params if name.startswith(prefix)]
        if any(name.startswith(self.controls.key("open-")) for name in own):
            return frozenset()
        unread = [name for name in own if name not in st.session_state]
        return frozenset(sections) if unread else frozenset()


def _label(title: str, summary: str) -> str:
    return f"**{title}** :gray[{summary}]" if summary else f"**{title}**"


def _open_or_close(keys: list[str]) -> None:
    for key in keys:
        st.session_state[key] = st.session_state[OPEN_ALL]
