"""The frame of every page, home included: its words, title and sidebar.

It imports nothing heavy: home is the first page a new server is asked for, and must not wait for torch and pandas.
"""

import html
import json

import streamlit as st

from serving.process.background import freeze_imported_modules
from ui.chapter.contents import WALK_STAGES, all_chapters, chapter_entries, page
from ui.chapter.tour import mount_tour, report_unknown_step
from ui.text.numbers import series
from ui.text.translations import translations
from ui.text.words import Words, load_words, streamlit_labels
from ui.widgets.component import component
from ui.widgets.query_param import follow_former_link
from ui.widgets.sidebar import Sharing, chosen_language, language_select
from viz_core.runtime.assets import ASSETS

_COMPONENTS = ASSETS / "components"
_mount_labels = component("streamlit_labels", in_page=True)  # what Streamlit says in English
_mount_history = component("history")  # the Back button goes through what was typed
_mount_presenter = component("present", in_page=True)
_mount_terms = component("terms", in_page=True)  # a term pointed at: what other languages call it, what it names


class Frame:
    """Title, sidebar and words of one page."""

    def __init__(self, name: str) -> None:
        freeze_imported_modules()  # the page has imported what it needs
        self.name = name
        self.words: Words = load_words(name)
        self.common: Words = load_words("common")
        follow_former_link(name)
        self.scripts = st.container(key="scripts")  # for components that show nothing
        with self.scripts:
            seen = "" if name == "home" else name
            languages = {"language": self.words.language, "chosen": chosen_language()}
            _mount_history(key="history-mount", data={"seen": seen, **languages})
            _mount_labels(key="labels-mount", data=json.dumps(streamlit_labels(self.words.language)).encode())
        self._sidebar()
        st.title(self.words.title, anchor=False)
        self._map_of_the_walk()
        report_unknown_step(name)

    def question(self) -> None:
        """Draw the question that the page answers."""
        with st.container(key="question"):
            st.markdown(self.words("question"))

    def definition(self) -> None:
        """Draw the definition of the chapter's subject (`definition`) and, beside it, its formula (`formula`)."""
        with st.container(horizontal=True, vertical_alignment="center", key="definition"):
            st.markdown(self.words("definition"))
            st.markdown(self.words("formula"))

    def takeaways(self) -> None:
        """Draw what to remember (`takeaways`), side by side: three lines, each linked to the measure that shows it."""
        with st.container(key="takeaways"):
            st.markdown(self.words("takeaways"))

    def heading(self, name: str) -> None:
        """Draw the heading `heading.NAME`, with a link of its own."""
        st.header(self.words(f"heading.{name}"), anchor=name)

    def text(self, name: str, **values: object) -> None:
        """Draw a section of prose or mathematics."""
        st.markdown(self.words(name, **values))

    def mount_terms(self) -> None:
        """Make the terms in the text above explain themselves; all that a reader needs is above it."""
        with self.scripts:
            terms = {"translations": translations(self.words.language), "prefix": self.words.prefix}
            _mount_terms(key="terms-mount", data=json.dumps(terms).encode())

    def next(self) -> None:
        """Draw the link to the next chapter, or home after the last one."""
        self.mount_terms()
        order = all_chapters()
        after = order[(order.index(self.name) + 1) % len(order)]
        link = page(after)
        with st.container(horizontal=True, vertical_alignment="center", key="next"):
            label = self.common("start" if self.name == "home" else "next", title=link.title)
            st.page_link(link, label=label, icon=":material/arrow_forward:")
            if "minutes" in self.words.front:
                st.caption(self.common("minutes", minutes=self.words.front["minutes"]))

    def _map_of_the_walk(self) -> None:
        """Draw the stages of the walk as dots on a path, those of this chapter lit; each links to its stage."""
        entry = chapter_entries().get(self.name)
        if entry is None or not entry.walk:
            return
        words = load_words("walk", self.words.language)
        names = {stage: html.escape(words(f"view.stage-{stage}")) for stage in WALK_STAGES}
        here = self.common("on-the-walk", stages=series([names[each] for each in entry.walk], words.language))
        dots = "".join(
            f'<li><a href="./walk?walk-at={stage}.0..0.0~~~~stage" target="_self" title="{name}" aria-label="{name}"'
            # Tab stops at this chapter's stages alone: the walk's own page has keys for all of them.
            + (' aria-current="location"' if stage in entry.walk else ' tabindex="-1"')
            + "></a></li>"
            for stage, name in names.items()
        )
        with st.container(key="on-the-walk"):
            st.html(f'<nav aria-label="{here}"><ol>{dots}</ol></nav>')

    def _sidebar(self) -> None:
        """Draw the logo above the table of contents, and language, sharing and tour below it."""
        st.logo(_COMPONENTS / "wordmark.svg", icon_image=_COMPONENTS / "logo.svg", size="large")
        with st.sidebar, st.container(key="sidebar-foot"):
            language_select(self.common)
            entry = chapter_entries().get(self.name)
            self.sharing = Sharing(self.words, entry.site if entry else ())
            mount_tour(self.name)
            if self.name != "home":
                labels = self.common.group("present")
                _mount_presenter(key="present", data=json.dumps(labels | {"chapter": self.name}).encode())
