"""A patch sweep between two runs: its map, and the prediction with one cell patched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from serving.settings import settings
from ui.blocks.two_sentences_figures import LEAST_SHARE, circuit_figure, sweep_figure, words_figure
from ui.chapter.chapter import Chapter
from ui.chapter.claims import Claim
from ui.chapter.downloads import DownloadButtons
from ui.text.head_names import head_name, head_number, head_place, head_title, layer_place
from ui.text.markdown import escape
from ui.text.words import Words, load_words
from ui.widgets.chart import Point
from ui.widgets.controls import Controls
from viz_core.circuits import Edge
from viz_core.lab.sentence_pair import TwoSentences
from viz_core.lab.two_sentences import HEADS, MAX_HEADS, CircuitFound, Comparison, Predictions

_ROUNDING = 1e-4  # logits


@dataclass(frozen=True)
class Experiment:
    """Two runs that are compared, and what can be asked about them.

    Attributes:
        sweep: of a stack and a kind of cell, the logit difference with each cell patched.
        predictions: of a stack, a kind of cell, a layer and a column: after the first input, after the second, and
            after the second with this cell of the first.
        circuit: of a number of heads, those that recover most and the paths between them.
    """

    comparison: Comparison
    sweep: Callable[[str, str], Float[np.ndarray, "layers columns"]]
    predictions: Callable[[str, str, int, int], Predictions]
    circuit: Callable[[int], CircuitFound]


def read_sentences(first: str, second: str) -> TwoSentences:
    """Draw the inputs, which begin with two sentences; return what they hold."""
    words = load_words("two-sentences")
    controls = Controls(words)
    left, right = st.columns(2)
    with left:
        clean = controls.text("clean", first)
        answer = controls.text("answer", "", placeholder=words("placeholder"))
    with right:
        corrupted = controls.text("corrupted", second)
        other = controls.text("other", "", placeholder=words("placeholder"))
    allowed = settings()
    return TwoSentences(clean, corrupted, answer, other, allowed.max_characters, allowed.max_tokens)


def draw_experiment(chapter: Chapter, experiment: Experiment) -> None:
    """Draw the differences, the map of a sweep, and the prediction with the chosen cell patched."""
    words, found = load_words("two-sentences"), experiment.comparison
    controls = Controls(words)
    answers = {"answer": escape(found.answers[0]), "other": escape(found.answers[1])}
    st.markdown(words("about", **answers))
    st.markdown(words("differences", first=_signed(found.clean), second=_signed(found.corrupted)))
    if "encoder" in found.tokens and "decoder" in found.tokens:
        st.markdown(words("after", text=escape(" ".join(token for token, _ in found.tokens["decoder"]))))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        stacks = tuple(found.sweeps)
        stack = str(controls.choice("stack", stacks, stacks[0])) if len(stacks) > 1 else stacks[0]
        what = str(controls.choice("what", found.sweeps[stack], found.sweeps[stack][0]))
    differences = experiment.sweep(stack, what)
    recovered = found.recovered(differences)
    columns = _columns(found, stack, what, differences.shape[1])
    layer, column = _choose_cell(controls, recovered, columns, what)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _draw_map(chapter, words, recovered, columns, (layer, column), what)
    with right:
        runs = experiment.predictions(stack, what, layer, column)
        _draw_words(chapter, words, runs, found, _place(words, what, layer, column, columns))
    residual = abs(runs.difference - float(differences[layer, column]))
    with st.container(horizontal=True, key="claims-two-sentences"):
        Claim("claim-two-sentences", words("claim"), "off-by", residual, _ROUNDING).draw(chapter.common)
    table = pd.DataFrame(
        {
            "layer": np.repeat(np.arange(1, len(differences) + 1), len(columns)),
            "column": list(columns) * len(differences),
            "difference": differences.ravel(),
            "recovered": recovered.ravel(),
        }
    )
    DownloadButtons(words, chapter.common).table("sweep", lambda: table)
    if any(kind in HEADS for kinds in found.sweeps.values() for kind in kinds) and controls.toggle("circuit"):
        _draw_circuit(chapter, controls, experiment)


def _columns(found: Comparison, stack: str, what: str, count: int) -> tuple[str, ...]:
    """Return the labels of a map's columns: heads, or tokens, where they differ those of both sentences."""
    if what in HEADS:
        return tuple(head_number(head + 1) for head in range(count))
    return tuple(first if first == second else f"{second} ← {first}" for first, second in found.tokens[stack])


def _choose_cell(
    controls: Controls, recovered: Float[np.ndarray, "layers columns"], columns: tuple[str, ...], what: str
) -> tuple[int, int]:
    """Draw two lists for layer and column of a cell, from 1 in links; return its place from 0."""
    below = recovered[:-1] if what == "residual" and len(recovered) > 1 else recovered  # the last layer's end is 1
    layer, column = (int(i) for i in np.unravel_index(np.abs(below).argmax(), below.shape))
    controls.clamp("layer", len(recovered))
    controls.clamp("cell", len(columns))
    names = dict(enumerate(columns if what in HEADS else (f"{i} {name}" for i, name in enumerate(columns, 1)), 1))
    first, second = st.columns(2)
    with first:
        chosen = controls.select("layer", tuple(range(1, len(recovered) + 1)), layer + 1, layer_place)
    with second:
        cell = controls.select("cell", tuple(names), column + 1, names.__getitem__)
    return int(chosen) - 1, int(cell) - 1


def _draw_map(
    chapter: Chapter,
    words: Words,
    recovered: Float[np.ndarray, "layers columns"],
    columns: tuple[str, ...],
    chosen: tuple[int, int],
    what: str,
) -> None:
    figure = words.group("figure")
    layer, column = (int(i) for i in np.unravel_index(np.abs(recovered).argmax(), recovered.shape))
    most, place = f"{recovered[layer, column]:.2f}", _place(words, what, layer, column, columns)
    cells = recovered.size
    drawn = sweep_figure(recovered, columns, chosen, figure["head" if what in HEADS else "token"], figure)
    chapter.figure("sweep", drawn, words=words, on_click=_choose, cells=cells, most=most, place=place)


def _choose(point: Point) -> None:
    """Choose the clicked cell, in a callback before the page reruns."""
    controls = Controls(load_words("two-sentences"))
    st.session_state[controls.key("layer")] = round(float(point["y"])) + 1
    st.session_state[controls.key("cell")] = round(float(point["x"])) + 1


def _draw_words(chapter: Chapter, words: Words, runs: Predictions, found: Comparison, place: str) -> None:
    figure = words.group("figure")
    names = [figure[name] for name in ("second", "patched", "first")]
    drawn = words_figure(runs.words, runs.probabilities[[1, 2, 0]], names, figure)
    chapter.figure(
        "patched-words",
        drawn,
        words=words,
        place=place,
        second=_signed(found.corrupted),
        patched=_signed(runs.difference),
        share=f"{found.recovered(runs.difference):.0%}",
        word=escape(runs.words[0]),
    )


def _place(words: Words, what: str, layer: int, column: int, columns: tuple[str, ...]) -> str:
    """Return a cell in words: "layer 2, head 3", or "layer 2, girl"."""
    if what in HEADS:
        return head_place(layer + 1, column + 1)
    return words("place", layer=layer_place(layer + 1), column=escape(columns[column]))


def _signed(number: float) -> str:
    return f"{number:+.2f}"


def _draw_circuit(chapter: Chapter, controls: Controls, experiment: Experiment) -> None:
    """Draw the strongest heads, the paths between them, and how much they recover alone."""
    words, found = controls.words, experiment.comparison
    count = int(controls.slider("count", 1, MAX_HEADS, 5))
    circuit = experiment.circuit(count)
    edges = sorted(((edge, found.recovered(edge.value)) for edge in circuit.edges), key=lambda pair: -abs(pair[1]))
    random, alone = found.recovered(circuit.random), found.recovered(circuit.alone)
    size = len(circuit.heads)
    st.markdown(words("circuit", count=size))
    shown = [(path_name(words, edge), share) for edge, share in edges if abs(share) >= LEAST_SHARE]
    listed = "; ".join(f"{path}: {share:.2f}" for path, share in shown)
    drawn = circuit_figure(circuit.heads, edges, words.group("figure"))
    path, share = path_name(words, edges[0][0]), f"{edges[0][1]:.0%}"
    chapter.figure("circuit", drawn, words=words, count=size, paths=listed or "0", path=path, share=share)
    values = {"alone": f"{alone:.0%}", "mean": f"{random.mean():.0%}", "sd": f"{100 * random.std(ddof=1):.0f}"}
    reached = int((random >= alone).sum())
    st.markdown(words("alone", count=size, draws=len(random), reached=reached, **values))
    table = pd.DataFrame([(path_name(words, edge), edge.value, share) for edge, share in edges])
    table.columns = pd.Index(["path", "difference", "recovered"])
    DownloadButtons(words, chapter.common).table("circuit", lambda: table)


def path_name(words: Words, edge: Edge) -> str:
    """Return a path in words: "head 1 of layer 1 → values of head 4 of layer 4"."""
    start, end = head_title(head_name(*edge.sender), with_kind=not edge.sender[0].endswith("self")), edge.receiver
    if end is None:
        return words("path-logits", sender=start)
    receiver = head_title(head_name(*end), with_kind=not end[0].endswith("self"))
    return words("path", sender=start, receiver=receiver, to=words(f"figure.{edge.to}"))
