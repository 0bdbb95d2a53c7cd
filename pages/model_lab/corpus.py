"""Corpus controls: choose sentences, read them with progress, stop."""

from __future__ import annotations

import hashlib

import streamlit as st

from pages.model_lab.corpus_found import UNASKED, show_found, table_of
from pages.model_lab.corpus_text import repeated_words, sentences_of
from pages.model_lab.model_choice import report_errors
from serving.requests.corpus import NOTHING, CorpusFound, read_sentences
from serving.requests.hub import HubRequest
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model
from ui.compute.slots import is_hosted
from ui.widgets.upload import text_file
from viz_core.hub import HubCard
from viz_core.pretrained.samples import held_out

_AT_ONCE = 25  # sentences between two steps of the progress
_MOST = {
    False: (5000, 2_000_000),
    True: (300, 256_000),
}  # sentences and bytes of a file; second: public server


def corpus(chapter: Chapter, card: HubCard, request: HubRequest) -> None:
    """Show what each head does over many sentences, once the reader starts it."""
    texts = _read_texts(chapter)
    found = None if texts is None else _read(chapter, request, texts)
    if texts is not None and found is not None:
        show_found(chapter, card, found, texts, request.text)


def _read_texts(chapter: Chapter) -> tuple[str, ...] | None:
    """The sentences; None, after a sentence, where there are none yet."""
    source = chapter.controls.choice("sentences", ("shipped", "random", "own"), "shipped")
    if source != "own":
        shipped = tuple(sample.english for sample in held_out())
        return shipped if source == "shipped" else repeated_words(shipped)
    most, most_bytes = _MOST[is_hosted()]
    chapter.text("corpus-file", most=f"{most:,}", kilobytes=f"{most_bytes // 1000:,}")
    content = text_file(chapter.words("corpus-text"), chapter.controls.key("corpus-file"))
    if content is None:
        return None
    read = report_errors(chapter, lambda: sentences_of(content, most_bytes, most))
    if read is None:
        return None
    texts, more = read
    if more:
        st.caption(chapter.words("corpus-more", most=f"{most:,}", more=f"{more:,}"))
    return texts


def _read(chapter: Chapter, request: HubRequest, texts: tuple[str, ...]) -> CorpusFound | None:
    """Measures over all sentences; None before the reader starts, or after they stop."""
    key, words = chapter.controls.key("corpus-read"), chapter.words
    name = hashlib.sha256("\n".join((repr((request.model, request.new_tokens)), *texts)).encode()).hexdigest()
    cached = st.session_state.get(f"{key}-found")
    if cached and cached[0] == name:
        found: CorpusFound = cached[1]
        return found
    if st.session_state.get(key) != name:
        label, begin = words("corpus-go", count=f"{len(texts):,}"), {key: name}
        st.button(label, key=f"{key}-go", type="primary", on_click=st.session_state.update, args=(begin,))
        return None
    place, found = st.empty(), NOTHING
    with place.container():
        with st.container(horizontal=True, vertical_alignment="center"):
            bar = st.progress(0.0, words("corpus-at-work", done=0, count=f"{len(texts):,}"))
            stop = {key: None}
            st.button(
                chapter.common("held-out-stop"), key=f"{key}-stop", on_click=st.session_state.update, args=(stop,)
            )
        filling = st.empty()
        for start in range(0, len(texts), _AT_ONCE):
            some = texts[start : start + _AT_ONCE]
            found = found + evaluate_model(request.model, read_sentences, some, start, request.new_tokens or None)
            done = min(start + _AT_ONCE, len(texts))
            bar.progress(done / len(texts), words("corpus-at-work", done=f"{done:,}", count=f"{len(texts):,}"))
            for kind in list(found.kinds.values())[:1]:
                filling.dataframe(table_of(chapter, kind), hide_index=True, height=240, placeholder=UNASKED)
    place.empty()
    st.session_state[f"{key}-found"] = (name, found)
    return found
