"""The sidebar: the language, the note on sharing, and the link to the page without a server that shows the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from serving.settings import settings
from ui.streamlit_internals.script_run import StreamlitInvalidLayoutContextError
from ui.text.markdown import escape
from ui.text.words import LANGUAGE, Words, browser_language, current_language, languages, load_words, preferred_language
from ui.widgets.component import component
from viz_core.pretrained.samples import GARMENTS, SCENES, sentence

_SELECT = "language-switch"
_CHOSEN = "language-chosen"


def language_select(common: Words) -> None:
    """Draw the list of languages, if there is more than one.

    A language other than the browser's is in the URL, so that a copied link shows what its sender saw. The browser
    keeps what was chosen here, and not what a link asked for.
    """
    if len(languages()) == 1:
        return

    def changed() -> None:
        chosen = st.session_state[_SELECT]
        st.session_state[LANGUAGE] = st.session_state[_CHOSEN] = st.query_params[LANGUAGE] = chosen

    current = current_language()
    requested = st.query_params.get(LANGUAGE)
    if requested is not None and requested not in languages():
        st.caption(common("language-none", asked=escape(requested[:40]), shown=_name(current)))
    if current == browser_language() == preferred_language():
        st.query_params.pop(LANGUAGE, None)
    elif requested != current:
        st.query_params[LANGUAGE] = current
    st.session_state[_SELECT] = current
    st.selectbox(common("language"), languages(), format_func=_name, key=_SELECT, on_change=changed)


def chosen_language() -> str:
    """Return the language that the reader chose in this window, for the browser to keep; "" if none."""
    return st.session_state.get(_CHOSEN, "")


def _name(language: str) -> str:
    """Return the name of a language in that language."""
    return load_words("common", language)("language-name")


_OFF = {"without": {"name": "off"}}
_BEAMS = {"name": "beam", "values": {"greedy": "1", "beam 4": "4"}}
_OF_ANY_CHAPTER = ("head", "pin", "look", "walk-at", "walk-edits")
"""Query parameters without a chapter's prefix, of the attention view and the walk."""


def static_pages(words: Words, recorded: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return the pages that may show the same as a chapter, in the order in which they are tried; [] where none does.

    Each has its `file`; `only`: the values that query parameters may have, "" for an absent one; and `carried`: what
    each other parameter is called there, {"name", "values" by those of the app, "initial" where the first values
    differ}. With any other parameter in its URL the app shows what the page does not.

    Args:
        recorded: `site` of the chapter's entry.
    """
    return [
        {"file": file, "only": _keyed(words, only), "carried": _keyed(words, carried)}
        for file, only, carried in _pages(words, recorded)
    ]


def _keyed(words: Words, by_control: dict[str, Any]) -> dict[str, Any]:
    return {name if name in _OF_ANY_CHAPTER else f"{words.prefix}-{name}": each for name, each in by_control.items()}


def _pages(words: Words, recorded: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """File, `only` and `carried` of each page, by the names of controls."""
    view = _OFF | _named("head", "pin", "look")
    if words.chapter == "transformer":
        text = {"name": "text", "initial": sentence("cat")}
        return [("transformer", {}, {"text": text, "search": _BEAMS} | view)]
    if words.chapter == "vision-transformer":
        models = {"name": "model", "values": {name: name for name in ("vit-fashion-mnist", "vit-cifar10")}}
        samples = {"name": "sample", "values": {name: name for name in (*GARMENTS, *SCENES)}}
        return [("vision-transformer", {"source": ["", "sample"]}, {"model": models, "sample": samples} | view)]
    if words.chapter == "model-lab":
        start = {"name": "text", "initial": words("start.decoder")}
        writing = _named("new", "temperature", "topk", "seed")
        return [("writer", {"model": ["", "writer-en"]}, {"start": start} | writing | view)]
    if words.chapter == "walk":
        text = {"name": "text", "initial": sentence("cat")}
        walk = {"walk-at": {"name": "at"}, "walk-edits": {"name": "off"}}
        return [("walk", {"model": ["translator"]}, {"text": text} | walk)]
    places = {
        name: {"name": name, "values": {value: str(i) for i, value in enumerate(each["values"])}}
        for each in recorded
        if (name := each["control"].removeprefix(f"{words.prefix}-"))
    }
    return [(words.chapter, {}, places)] if places else []


def _named(*names: str) -> dict[str, Any]:
    return {name: {"name": name} for name in names}


_mount = component("static_link")


class Sharing:
    """The note on sharing, and the link to the static page."""

    def __init__(self, words: Words, recorded: Sequence[Mapping[str, Any]]) -> None:
        """Draw the note, and the link if the Atlas has a static site."""
        self.common = load_words("common")
        self._unlinked: dict[str, str] = {}
        self._note = st.empty()
        self._note.caption(self.common("share"))
        pages = static_pages(words, recorded) if settings().site else []
        if pages:
            site = {"address": settings().site.rstrip("/"), "language": words.language, "pages": pages}
            _mount(key="static-link", data=site | {"label": self.common("share-static")})

    def report_unlinked(self, key: str, label: str) -> None:
        """Say that the URL does not hold the text of this control."""
        self._unlinked[key] = label
        try:
            self._note.caption(self.common("share-but", label=list(self._unlinked.values())))
        except StreamlitInvalidLayoutContextError:  # a fragment by itself; in a run of the page it may write here
            st.rerun()
