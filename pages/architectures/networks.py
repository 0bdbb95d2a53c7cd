"""Every architecture as a network, and whether real layers carry a signal as far as the drawing says."""

from __future__ import annotations

import math
from functools import partial

import streamlit as st

from pages.architectures.network_figure import connection_figure
from pages.architectures.sizes import Asked, number
from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures import ARCHITECTURES, LayerSizes, longest_path, path_length
from viz_core.lessons.architectures.experiments import signal_strength

WINDOWED = ("convolution", "dilated", "restricted")  # those that see a few tokens a layer


def networks(chapter: Chapter, asked: Asked) -> None:
    """Every architecture as a network, with the way between the two tokens."""
    names, sizes = chapter.words.group("figure"), asked.drawn
    rows = (("readout", "recurrent"), ("convolution", "dilated"), ("attention", "restricted"))
    for row in rows:
        for column, name in zip(st.columns(2, gap="large"), row, strict=True):
            with column:
                if name == "readout":
                    _readout(chapter, asked)
                else:
                    _network(chapter, asked, name, names, sizes)
    if asked.last < asked.first:
        chapter.text("backwards", first=asked.first + 1, last=asked.last + 1)
    chapter.guidance("networks")


def _network(chapter: Chapter, asked: Asked, name: str, names: dict[str, str], sizes: LayerSizes) -> None:
    length = path_length(name, asked.first, asked.last, sizes)
    st.markdown(chapter.words(f"network-{name}", k=sizes.k, r=sizes.r, length=number(length)))
    chapter.figure(
        f"network-{name}",
        connection_figure(name, asked.first, asked.last, sizes, names),
        n=sizes.n,
        first=asked.first + 1,
        last=asked.last + 1,
        length=number(length),
    )


def _readout(chapter: Chapter, asked: Asked) -> None:
    """The paths between the two tokens as numbers."""
    lengths = {
        f"{name}_path": number(path_length(name, asked.first, asked.last, asked.drawn)) for name in ARCHITECTURES
    }
    s = asked.sizes
    distance = abs(asked.last - asked.first)
    chapter.text("readout", first=asked.first + 1, last=asked.last + 1, distance=distance, k=s.k, r=s.r, **lengths)


def reach_claims(chapter: Chapter, asked: Asked) -> None:
    """Gradients of real layers: nothing arrives a layer too early, something arrives in time."""
    sizes = LayerSizes(asked.drawn.n, 8, asked.sizes.k, asked.sizes.r)
    pair = {"first": asked.first + 1, "last": asked.last + 1}
    with chapter.claims():
        broken = chapter.break_it("shallow", "deep")
        for name in WINDOWED:
            length = path_length(name, asked.first, asked.last, sizes)
            reach = partial(partial, _signal, name, asked.first, asked.last, sizes)
            told = {"layer": chapter.words(f"figure.{name}"), "length": number(length), **pair}
            if math.isinf(length):
                deepest = longest_path(name, sizes)
                layers = sizes.n if math.isinf(deepest) else int(deepest)
                chapter.claim("never", reach(layers), 0.0, **told, layers=layers)
                continue
            if length > 1:
                chapter.claim("too-early", reach(int(length) - (broken != "deep")), 0.0, **told)
            if length > 0:
                chapter.claim_at_least("in-time", reach(int(length) - (broken == "shallow")), 1e-300, **told)
    if asked.first == asked.last:
        chapter.text("same-token")


@st.cache_data(max_entries=256, show_spinner=False)
def _signal(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    return signal_strength(name, first, last, sizes, num_layers)
