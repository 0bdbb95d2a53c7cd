"""Positions added to a sentence: embedding, position and their sum."""

from __future__ import annotations

from functools import partial

import streamlit as st

from ui.blocks.sentence import or_explain
from ui.chapter.chapter import Chapter
from ui.compute.models import translator
from ui.text.markdown import escape
from ui.widgets.heatmap_payload import signed_heatmap
from ui.widgets.shared_sentence import shared_text_input
from viz_core.lessons.sinusoidal_encoding.added import add_positions, find_twins
from viz_core.pretrained import Translator
from viz_core.pretrained.token_vectors import embed_ids

MODEL = "transformer-en-fr"
MOST_TOKENS = 64  # more rows than this are too thin to carry their words


def sentence(chapter: Chapter) -> None:
    """Embedding, position and their sum for what the reader types."""
    start = chapter.words("sentence.start")
    text = shared_text_input(chapter.controls, "sentence", start, chapter.words("placeholder"))
    if not text.strip():
        st.info(chapter.words("sentence.empty"), icon=":material/edit:")
        return
    read = or_explain(chapter, lambda: _read(text))
    if read is not None:
        _show_sum(chapter, *read)


def _read(text: str) -> tuple[Translator, list[int]]:
    model = translator(MODEL)
    return model, model.encode(text)


def _show_sum(chapter: Chapter, model: Translator, ids: list[int]) -> None:
    added = add_positions(embed_ids(model, ids))
    tokens = model.readable_tokens(ids)
    chapter.text("sentence", d=added.total.shape[1])
    twins = find_twins(ids, added)
    if twins is None:
        chapter.text("no-twins")
    else:
        first, second, before, after = twins
        values = {"first": first, "second": second, "before": f"{before:.3f}", "after": f"{after:.3f}"}
        chapter.text("twins", token=escape(tokens[first]), **values)
    shown = min(len(ids), MOST_TOKENS)
    limit = float(added.embedding[:shown].abs().quantile(0.99))  # a few outliers would pale all else
    names = chapter.words.group("figure")
    for name, part in added._asdict().items():
        chapter.heading(name)
        picture = partial(signed_heatmap, part[:shown], names["token"], names["dimension"], tokens[:shown], limit)
        length = f"{part.norm(dim=1).mean():.2f}"
        chapter.heatmap(name, picture, count=shown, d=part.shape[1], length=length)
    if shown < len(ids):
        st.caption(chapter.words("sentence.first", shown=shown, count=len(ids)))
