"""Shipped models and what they answered, cached within bounds and shared, read-only, by all sessions."""

from __future__ import annotations

import streamlit as st

from hosting.runner import Here, ModelRunner, Sentence
from hosting.settings import settings
from ui.compute import computed, kept
from ui.words import load_words
from viz_core.figures.map_group import MapGroup
from viz_core.pretrained import Translation, Translator, load_translator


@st.cache_resource(max_entries=4, show_spinner=False)
def translator(name: str) -> Translator:
    """A shipped translator in this process, loaded once: for what is read off its parameters."""
    return load_translator(name)


@st.cache_resource(show_spinner=False)
def runner() -> ModelRunner:
    """Where the shipped translators run."""
    if settings().runner == "serve":
        from hosting.ray_serve import on_serve  # Ray is there only where it is wanted

        return on_serve(settings().ray_address, settings().max_seconds)
    return Here(translator, kept())


@computed(says="translating")
def translation(name: str, text: str, beam: int) -> Translation:
    """A translation with its trace; nothing in it changes, so sessions that ask the same share it."""
    return runner().translate(Sentence(name, text, beam))


@computed()
def translation_maps(name: str, text: str, beam: int, language: str) -> tuple[MapGroup, ...]:
    """The maps of a translation as an attention view shows them; they keep their thumbnails."""
    labels = load_words("translation", language).group("view")
    return runner().groups(Sentence(name, text, beam), labels)


@computed(says="measuring")
def translation_residuals(name: str, text: str, beam: int) -> dict[str, float]:
    """How far a translation is from what must be true of it, by the name of each claim."""
    residuals: dict[str, float] = runner().look(Sentence(name, text, beam), "residuals")
    return residuals
