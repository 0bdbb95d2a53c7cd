"""A sentence input, and the message where no model can take the sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.text.errors import explain
from ui.widgets.shared_sentence import shared_text_input
from viz_core.pretrained import CheckpointError, TextError
from viz_core.pretrained.samples import sentence

Result = TypeVar("Result")


def sentence_input(chapter: Chapter, sample: str = "cat") -> str:
    """Draw a text input that begins with a sample sentence; return its text."""
    return shared_text_input(chapter.controls, "text", sentence(sample), chapter.words("placeholder"))


def or_explain(chapter: Chapter, run: Callable[[], Result]) -> Result | None:
    """Return what a shipped model returns, or None after a message that says why it cannot."""
    try:
        return run()
    except TextError as error:
        st.warning(explain(error), icon=":material/edit:")
    except CheckpointError as error:
        st.error(chapter.common("no-model", reason=explain(error)), icon=":material/inventory_2:")
    except ValueError as error:  # the device is missing; the message names those available
        st.error(explain(error), icon=":material/memory:")
    return None
