"""A sentence to type, and what is said where no model can answer it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.text.errors import explain
from ui.widgets.shared_sentence import shared_text_input
from viz_core.pretrained import CheckpointError, TextError
from viz_core.pretrained.samples import sentence

Answer = TypeVar("Answer")


def sentence_input(chapter: Chapter, sample: str = "cat") -> str:
    """A line to type in that begins with a sample sentence; it is in the URL."""
    return shared_text_input(chapter.controls, "text", sentence(sample), chapter.words("placeholder"))


def or_explain(chapter: Chapter, ask: Callable[[], Answer]) -> Answer | None:
    """What a shipped model answers, or None after a sentence that says why there is no answer. What was typed stays."""
    try:
        return ask()
    except TextError as error:
        st.warning(explain(error), icon=":material/edit:")
    except CheckpointError as error:
        st.error(chapter.common("no-model", reason=explain(error)), icon=":material/inventory_2:")
    except ValueError as error:  # an absent device; the message names those there are
        st.error(explain(error), icon=":material/memory:")
    return None
