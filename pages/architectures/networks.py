"""Every architecture as a network, and whether real layers carry a signal as far as the drawing says."""

from __future__ import annotations

import math
from functools import partial

import streamlit as st

from pages.architectures.network_figure import connection_figure
from pages.architectures.sizes import SizeInputs, number
from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures import ARCHITECTURES, LayerSizes, longest_path, path_length
from viz_core.lessons.architectures.experiments import signal_strength

WINDOWED = ("convolution", "dilated", "restricted")  # those that see a few tokens a layer


def networks(chapter: Chapter, inputs: SizeInputs) -> None:
    """Every architecture as a network, with the way between the two tokens."""
    names, sizes = chapter.words.group("figure"), inputs.drawn
    rows = (("readout", "recurrent"), ("convolution", "dilated"), ("attention", "restricted"))
    for row in rows:
        for column, name in zip(st.columns(2, gap="large"), row, strict=True):
            with column:
                if name == "readout":
                    _readout(chapter, inputs)
                else:
                    _network(chapter, inputs, name, names, sizes)
    if inputs.last < inputs.first:
        chapter.text("backwards", first=inputs.first + 1, last=inputs.last + 1)
    chapter.guidance("networks")


def _network(chapter: Chapter, inputs: SizeInputs, name: str, names: dict[str, str], sizes: LayerSizes) -> None:
    length = path_length(name, inputs.first, inputs.last, sizes)
    st.markdown(chapter.words(f"network-{name}", k=sizes.k, r=sizes.r, length=number(length)))
    chapter.figure(
        f"network-{name}",
        connection_figure(name, inputs.first, inputs.last, sizes, names),
        n=sizes.n,
        first=inputs.first + 1,
        last=inputs.last + 1,
        length=number(length),
    )


def _readout(chapter: Chapter, inputs: SizeInputs) -> None:
    """The paths between the two tokens as numbers."""
    lengths = {
        f"{name}_path": number(path_length(name, inputs.first, inputs.last, inputs.drawn)) for name in ARCHITECTURES
    }
    s = inputs.sizes
    distance = abs(inputs.last - inputs.first)
    chapter.text("readout", first=inputs.first + 1, last=inputs.last + 1, distance=distance, k=s.k, r=s.r, **lengths)


def reach_claims(chapter: Chapter, inputs: SizeInputs) -> None:
    """Gradients of real layers: nothing arrives a layer too early, something arrives in time."""
    sizes = LayerSizes(inputs.drawn.n, 8, inputs.sizes.k, inputs.sizes.r)
    pair = {"first": inputs.first + 1, "last": inputs.last + 1}
    with chapter.claims():
        broken = chapter.break_and_explain("shallow", "deep")
        for name in WINDOWED:
            length = path_length(name, inputs.first, inputs.last, sizes)
            reach = partial(partial, _signal, name, inputs.first, inputs.last, sizes)
            values = {"layer": chapter.words(f"figure.{name}"), "length": number(length), **pair}
            if math.isinf(length):
                deepest = longest_path(name, sizes)
                layers = sizes.n if math.isinf(deepest) else int(deepest)
                chapter.claim("never", reach(layers), 0.0, **values, layers=layers)
                continue
            if length > 1:
                chapter.claim("too-early", reach(int(length) - (broken != "deep")), 0.0, **values)
            if length > 0:
                chapter.claim_at_least("in-time", reach(int(length) - (broken == "shallow")), 1e-300, **values)
    if inputs.first == inputs.last:
        chapter.text("same-token")


@st.cache_data(max_entries=256, show_spinner=False)
def _signal(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    return signal_strength(name, first, last, sizes, num_layers)
