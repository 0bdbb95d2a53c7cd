"""Shipped models and what they answered, cached within bounds and shared, read-only, by all sessions."""

from __future__ import annotations

import streamlit as st

from ui.compute import computed
from ui.words import load_words
from viz_core import claims
from viz_core.figures.map_group import MapGroup
from viz_core.figures.translation import translation_groups
from viz_core.pretrained import Translation, Translator, load_translator


@st.cache_resource(max_entries=4, show_spinner=False)
def translator(name: str) -> Translator:
    """A shipped translator, loaded once."""
    return load_translator(name)


@computed(says="translating")
def translation(name: str, text: str, beam: int) -> Translation:
    """A translation with its trace; nothing in it changes, so sessions that ask the same share it."""
    return translator(name).translate(text, beam=beam)


@computed()
def translation_maps(name: str, text: str, beam: int, language: str) -> tuple[MapGroup, ...]:
    """The maps of a translation as an attention view shows them; they keep their thumbnails."""
    labels = load_words("translation", language).group("view")
    return translation_groups(translation(name, text, beam), labels)


@computed(says="measuring")
def translation_residuals(name: str, text: str, beam: int) -> dict[str, float]:
    """How far a translation is from what must be true of it, by the name of each claim."""
    model, result = translator(name), translation(name, text, beam)
    decoder = [call for call in result.trace if (call.stack, call.kind) == ("decoder", "self")]
    return {
        "rows": claims.row_sum_error(result.trace),
        "future": max(claims.future_weight(call) for call in decoder),
        "leak": claims.future_leak(model, result, len(result.target_ids) - 1),
        "cache": claims.cache_error(model, result),
    }
