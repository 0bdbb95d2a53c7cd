"""Inputs of the chapter: the sizes of a layer and two tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import streamlit as st

from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures.costs import LayerSizes

MOST_DRAWN = 16  # tokens a network can have before its lines run together
_LENGTHS = (*range(2, 17), 24, 32, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


@dataclass(frozen=True)
class SizeInputs:
    """The sizes the reader chose, and two of the tokens drawn, counted from 0.

    Attributes:
        words: the tokens that are drawn.
    """

    sizes: LayerSizes
    first: int
    last: int
    words: tuple[str, ...]

    @property
    def drawn(self) -> LayerSizes:
        """The sizes with no more tokens than can be drawn."""
        return LayerSizes(len(self.words), self.sizes.d, self.sizes.k, self.sizes.r)

    @property
    def ends(self) -> dict[str, str]:
        """The two words, by the names they have in the texts."""
        return {"first": self.words[self.first], "last": self.words[self.last]}


def size_inputs(chapter: Chapter) -> SizeInputs:
    """Read two words of a sentence and the sizes from the controls."""
    controls = chapter.controls
    for_one, for_other = st.container(), st.container()  # whose words are as many as n, below
    k = int(controls.slider("k", 1, 9, 3))
    with controls.more():
        n = controls.select_slider("n", _LENGTHS, 12)
        d = controls.select_slider("d", (8, 16, 32, 64, 128, 256, 512, 1024, 2048), 512)
        r = controls.select_slider("r", (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128, 256, 512), 4)
    words = tuple(chapter.words("sentence").split()[: min(n, MOST_DRAWN)])
    labels = dict(enumerate(words, start=1))
    with for_one:
        one = controls.select("from", tuple(labels), 1, labels.__getitem__) - 1
    with for_other:
        other = controls.select("to", tuple(labels), len(words), labels.__getitem__) - 1
    if n > MOST_DRAWN:
        st.caption(chapter.words("drawn", drawn=MOST_DRAWN, n=f"{n:,}"))
    return SizeInputs(LayerSizes(n, d, k, r), one, other, words)


def move_end(chapter: Chapter, inputs: SizeInputs, token: int) -> None:
    """Move the end that is nearer to a token of the figure there; tokens are counted from 1."""
    st.session_state[chapter.controls.key(nearer_end(inputs.first + 1, inputs.last + 1, token))] = token


def nearer_end(first: int, last: int, token: int) -> str:
    """Return the name of the control whose token is nearer to another, "to" where both are as near."""
    return "from" if abs(token - first) < abs(token - last) else "to"


def number(value: float) -> str:
    """Format a number: a whole number as it is, a fraction with one decimal, infinity as "∞"."""
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
