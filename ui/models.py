"""Models and what they answered, cached within bounds and shared, read-only, by all sessions."""

from __future__ import annotations

from typing import Any

import streamlit as st

from asking.model_spec import Model, Models, Progress, Shipped
from asking.runner import Here, ModelRunner
from asking.sentences import Sentence
from hosting.settings import settings
from ui.compute import computed, kept
from ui.words import load_words
from viz_core.pretrained import Translation, Translator
from viz_core.view.map_group import MapGroup


@st.cache_resource(show_spinner=False)
def models() -> Models:
    """The models in this process."""
    return Models()


@st.cache_resource(show_spinner=False)
def runner() -> ModelRunner:
    """Where models run."""
    if settings().runner == "serve":
        from asking.ray_serve import on_serve  # Ray is there only where it is wanted

        return on_serve(settings().ray_address)
    return Here(_load, kept())


def _load(model: Model, progress: Progress | None = None) -> Any:
    return models()(model, progress)


def translator(name: str) -> Translator:
    """A shipped translator in this process: for what is read off its parameters."""
    found: Translator = models()(Shipped(name))
    return found


def translator_if_any(name: str) -> Translator | None:
    """The same, or None where none ships or the device is not there: for who needs no more than its words."""
    try:
        return translator(name)
    except ValueError:
        return None


def sentence(name: str, text: str, beam: int = 1) -> Sentence:
    """A text for a shipped translator."""
    return Sentence(Shipped(name), text, beam)


@computed(says="translating")
def translation(name: str, text: str, beam: int) -> Translation:
    """A translation with its trace; nothing in it changes, so sessions that ask the same share it."""
    return runner().run(sentence(name, text, beam))


@computed()
def translation_maps(name: str, text: str, beam: int, language: str) -> tuple[MapGroup, ...]:
    """The maps of a translation as an attention view shows them; they keep their thumbnails."""
    labels = load_words("translation", language).group("view")
    return runner().groups(sentence(name, text, beam), labels)


@computed(says="measuring")
def translation_look(question: str, name: str, text: str, beam: int = 1) -> Any:
    """The answer to one of `Sentence.looks` about a translation."""
    return runner().look(sentence(name, text, beam), question)
