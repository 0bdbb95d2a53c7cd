"""Layers as networks, and whether real layers carry a signal as far as the drawings say."""

import math

import streamlit as st

from pages.architectures.network_figure import connection_figure
from pages.architectures.parts import SizeInputs, move_end, number
from ui.chapter.chapter import Chapter
from ui.widgets.choices import Mark, Marks
from viz_core.lessons.architectures import ARCHITECTURES, LayerSizes, longest_path, path_length, signal_strength

WINDOWED = ("convolution", "dilated", "restricted")  # layers that see a few tokens each
BREAKS = ("shallow", "deep")
_ENDS = {"n": 8, "from": 1, "to": 8}
ANSWERS = Marks(
    "figure-network-convolution",
    tuple(Mark((0.5, 8.5), (layer - 0.3, layer + 0.3)) for layer in (2, 3, 4)),
    {**_ENDS, "k": 3},
    {**_ENDS, "k": 4},
)
"""The layers that may be the first to join both ends."""
_EXTRA_LAYERS = {"": 0, "shallow": -1, "deep": 1}


def main_figure(chapter: Chapter, inputs: SizeInputs, broken: str, setting: str) -> None:
    """Draw the three kinds of network with the path between the two tokens, and the claims about their depth."""
    names = ("recurrent", "convolution", "attention")
    for column, name in zip(st.columns(len(names), gap="small" if broken else "medium"), names, strict=True):
        with column:
            _network(chapter, inputs, name, setting, narrow=bool(broken))
    if inputs.first == inputs.last:
        chapter.text("same-token")
    elif inputs.last < inputs.first:
        chapter.text("backwards", **inputs.ends)
    if inputs.first != inputs.last:
        with chapter.claim_row("main"):
            _claims(chapter, inputs, setting)


def more_networks(chapter: Chapter, inputs: SizeInputs) -> None:
    """Draw the two layers that the main figure leaves out, and the paths of all five as numbers."""
    for column, name in zip(st.columns(2, gap="large"), ("dilated", "restricted"), strict=True):
        with column:
            _network(chapter, inputs, name, "")
    lengths = {
        f"{name}_path": number(path_length(name, inputs.first, inputs.last, inputs.drawn)) for name in ARCHITECTURES
    }
    s, distance = inputs.sizes, abs(inputs.last - inputs.first)
    chapter.text("readout", distance=distance, k=s.k, r=s.r, **inputs.ends, **lengths)
    chapter.guidance("networks")


def _network(chapter: Chapter, inputs: SizeInputs, name: str, setting: str, narrow: bool = False) -> None:
    """Draw one stack with the path; a click on a token moves the nearer end of the path there."""
    sizes = inputs.drawn
    length = path_length(name, inputs.first, inputs.last, sizes)
    st.markdown(chapter.words(f"network-{name}", k=sizes.k, r=sizes.r, length=number(length)))
    labels, extra = chapter.words.group("figure"), _EXTRA_LAYERS[setting]
    chapter.figure(
        f"network-{name}",
        connection_figure(name, inputs.first, inputs.last, sizes, inputs.words, labels, extra, narrow),
        bar=not narrow,
        on_click=lambda point: move_end(chapter, inputs, round(float(point["x"]))),
        alt="network",
        layer=labels[name],
        n=sizes.n,
        length=number(length),
        first=inputs.words[inputs.first],
        last=inputs.words[inputs.last],
    )


def _claims(chapter: Chapter, inputs: SizeInputs, setting: str) -> None:
    """Gradients of real stacks: with a layer too few nothing arrives, with enough layers something does in each."""
    sizes = LayerSizes(inputs.drawn.n, 8, inputs.sizes.k, inputs.sizes.r)
    pair = inputs.ends
    stacks = ("attention", *WINDOWED)
    lengths = {name: path_length(name, inputs.first, inputs.last, sizes) for name in stacks}
    joined = {name: int(length) for name, length in lengths.items() if math.isfinite(length)}
    never = [name for name in stacks if name not in joined]

    def signals(extra_layers: int) -> list[float]:
        return [_signal(name, inputs.first, inputs.last, sizes, n + extra_layers) for name, n in joined.items()]

    if joined:
        chapter.claim("too-early", lambda: max(signals(1 if setting == "deep" else -1)), 0.0, **pair)
        chapter.claim("in-time", lambda: signals(min(0, _EXTRA_LAYERS[setting])).count(0.0), 0.0, **pair)
    if never:
        chapter.claim(
            "never",
            lambda: max(_signal(name, inputs.first, inputs.last, sizes, _deepest(name, sizes)) for name in never),
            0.0,
            **pair,
            names=[
                chapter.words("never-tried", name=chapter.words(f"figure.{name}"), layers=_deepest(name, sizes))
                for name in never
            ],
        )


def _deepest(name: str, sizes: LayerSizes) -> int:
    """Return as many layers as join the first token to the last; where none do, as many as there are tokens.

    More would cost without end: each dilated layer reaches k times as far as the one before.
    """
    length = longest_path(name, sizes)
    return int(length) if math.isfinite(length) else sizes.n


@st.cache_data(max_entries=256, show_spinner=False)
def _signal(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    return signal_strength(name, first, last, sizes, num_layers)
