"""A sentence input, and the message where no model can take the sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st

from ui.chapter.chapter import Chapter
from ui.text.errors import explain
from ui.text.markdown import escape
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


def word_labels(words: Sequence[str], write: Callable[[str], str] = escape) -> dict[int, str]:
    """Return the words by their places from 1; a word that occurs more than once has its place beside it.

    Args:
        write: writes a word as the control takes it; as Markdown unless given.
    """
    times = Counter(words)
    return {i: write(word) if times[word] == 1 else f"{write(word)} {i}" for i, word in enumerate(words, 1)}


def choose_token(chapter: Chapter, name: str, tokens: Sequence[str], first: int, default: int) -> int:
    """Draw a list of the tokens from `first` on; return the place of the chosen one. Places count from 0."""
    if chapter.controls.key(name) in st.query_params:  # chosen by the reader; a default follows the text
        chapter.controls.clamp(name, len(tokens))
    labels = word_labels(tokens, str)
    places = tuple(range(first + 1, len(tokens) + 1))
    return chapter.controls.select(name, places, default + 1, labels.__getitem__) - 1
