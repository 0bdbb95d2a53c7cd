"""The architectures chapter's parts: the sizes asked for, networks drawn, the table, curves, a stopwatch, a shuffle."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import streamlit as st
import torch
from torch import Tensor, nn

from pages.architectures import figures
from ui.chapter import Chapter
from ui.controls import escape
from ui.models import translator
from ui.stopwatch import Run, stopwatch
from viz_core.figures.position_experiments import residual_figure
from viz_core.figures.position_maps import large_map
from viz_core.lessons.architectures import ARCHITECTURES, LayerSizes, layer_cost, longest_path, path_length
from viz_core.lessons.architectures.costs import crossover
from viz_core.lessons.architectures.experiments import pooled_residual, shuffled_residual, signal_strength
from viz_core.lessons.architectures.layers import build_layer
from viz_core.lessons.architectures.paths import path_matrix
from viz_core.positional.order import shuffled_order
from viz_core.pretrained import Translator
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens
from viz_core.runtime.device import best_device, describe_device
from viz_core.runtime.stopwatch import Measurement, growth, measure
from viz_core.trace import record

MODEL = "transformer-en-fr"
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
ORDER_MATTERS = 1e-3  # far above rounding, far below what any layer here does
MOST_DRAWN = 16  # tokens a network can have before its lines run together
MOST_PAIRED = 48
WINDOWED = ("convolution", "dilated", "restricted")  # those that see a few tokens a layer
_TIMED_HEADS = 4
_LENGTHS = (*range(2, 17), 24, 32, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
_CURVE = tuple(2**power for power in range(1, 17))


@dataclass(frozen=True)
class Asked:
    """The sizes the reader chose, and two of the tokens drawn, in order and counted from 0."""

    sizes: LayerSizes
    first: int
    last: int

    @property
    def drawn(self) -> LayerSizes:
        """The same with no more tokens than can be drawn."""
        return LayerSizes(min(self.sizes.n, MOST_DRAWN), self.sizes.d, self.sizes.k, self.sizes.r)


def ask(chapter: Chapter) -> Asked:
    """Four sizes and two tokens."""
    controls = chapter.controls
    for_n, for_k = st.columns(2, gap="large")
    for_d, for_r = st.columns(2, gap="large")
    for_one, for_other = st.columns(2, gap="large")
    with for_n:
        n = controls.stops("n", _LENGTHS, 12)
    with for_k:
        k = int(controls.slider("k", 1, 9, 3))
    with for_d:
        d = controls.stops("d", (8, 16, 32, 64, 128, 256, 512, 1024, 2048), 512)
    with for_r:
        r = controls.stops("r", (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128, 256, 512), 4)
    most = min(n, MOST_DRAWN)
    with for_one:
        one = int(controls.slider("from", 1, most, 1)) - 1
    with for_other:
        other = int(controls.slider("to", 1, most, most)) - 1
    if n > MOST_DRAWN:
        st.caption(chapter.words("drawn", drawn=MOST_DRAWN, n=f"{n:,}"))
    return Asked(LayerSizes(n, d, k, r), min(one, other), max(one, other))


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
    chapter.look_for("networks")


def reach_claims(chapter: Chapter, asked: Asked) -> None:
    """Gradients of real layers: nothing arrives a layer too early, something arrives in time."""
    sizes = LayerSizes(asked.drawn.n, 8, asked.sizes.k, asked.sizes.r)
    pair = {"first": asked.first + 1, "last": asked.last + 1}
    with chapter.claims():
        for name in WINDOWED:
            length = path_length(name, asked.first, asked.last, sizes)
            told = {"layer": chapter.words(f"figure.{name}"), "length": _number(length), **pair}
            if math.isinf(length):
                strength = _signal(name, asked.first, asked.last, sizes, sizes.n)
                chapter.claim("never", strength, 0.0, **{**told, "layers": sizes.n})
                continue
            if length > 1:
                strength = _signal(name, asked.first, asked.last, sizes, int(length) - 1)
                chapter.claim("too-early", strength, 0.0, **told)
            if length > 0:
                strength = _signal(name, asked.first, asked.last, sizes, int(length))
                chapter.claim_at_least("in-time", strength, 1e-300, **told)
        if asked.first == asked.last:
            chapter.text("same-token")


def table(chapter: Chapter, asked: Asked) -> None:
    """Table 1 with the reader's numbers, and what it leaves out."""
    values: dict[str, object] = {}
    for name in ARCHITECTURES:
        cost = layer_cost(name, asked.sizes)
        values |= {
            f"{name}_order": f"{cost.order:,}",
            f"{name}_counted": f"{cost.counted:,}",
            f"{name}_sequential": f"{cost.sequential:,}",
            f"{name}_path": _number(cost.path),
            f"{name}_exact": _number(longest_path(name, asked.sizes)),
        }
    s = asked.sizes
    chapter.text("table", n=f"{s.n:,}", d=f"{s.d:,}", k=s.k, r=f"{s.r:,}", **values)


def curves(chapter: Chapter, asked: Asked) -> None:
    """One column of the table over n, and where self-attention stops being the cheap one."""
    names, s = chapter.words.group("figure"), asked.sizes
    chapter.text("curves")
    shown = chapter.controls.choice("show", ("order", "counted", "sequential", "path"), "order")
    meets = {name: crossover(name, s) for name in ("recurrent", "convolution", "restricted")}
    inside = {name: n for name, n in meets.items() if _CURVE[0] <= n <= _CURVE[-1]} if shown == "order" else {}
    figure = figures.curves_figure(shown, _CURVE, s, inside, names)
    summary = ", ".join(f"{names[name]} {_number(getattr(layer_cost(name, s), shown))}" for name in ARCHITECTURES)
    chapter.figure("curves", figure, shown=names[shown], n=f"{s.n:,}", summary=summary)
    crossings = {name: f"{n:,}" for name, n in meets.items()}
    chapter.text(f"curves-{shown}", d=f"{s.d:,}", k=s.k, r=f"{s.r:,}", n=f"{s.n:,}", **crossings)


def pairs(chapter: Chapter, asked: Asked) -> None:
    """The path between every pair of tokens."""
    n = min(asked.sizes.n, MOST_PAIRED)
    sizes = LayerSizes(n, asked.sizes.d, asked.sizes.k, asked.sizes.r)
    names = chapter.words.group("figure")
    chapter.text("pairs", n=n)
    summary = ", ".join(f"{names[name]} {_number(longest_path(name, sizes))}" for name in ARCHITECTURES)
    maps = {name: path_matrix(name, sizes).numpy() for name in ARCHITECTURES}
    chapter.figure("pairs", figures.pairs_figure(maps, names), n=n, summary=summary)


def timing(chapter: Chapter, asked: Asked) -> None:
    """Real layers timed on this machine, beside what the formulas say."""
    chapter.text("stopwatch")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        most = chapter.controls.choice("most", (256, 1024, 4096), 1024)
        width = chapter.controls.choice("width", (64, 128, 256), 128)
    try:
        device = best_device()
    except ValueError as error:  # the message names those there are
        st.error(escape(str(error)), icon=":material/memory:")
        return
    lengths = [2**power for power in range(4, most.bit_length())]
    sizes = LayerSizes(most, width, asked.sizes.k, asked.sizes.r)
    chapter.text("stopwatch-where", device=describe_device(device))
    stopwatch(
        chapter,
        "stopwatch",
        lambda: _begin(sizes, lengths, device),
        lambda run: _draw_times(chapter, run),
    )


def shuffle(chapter: Chapter) -> None:
    """The permutation test: shuffle the words before a layer or after it."""
    start = next(sample.english for sample in sentences() if sample.id == "cat")
    text = chapter.controls.text("text", start, placeholder=chapter.words("placeholder"))
    chapter.text("shuffle")
    tokens = sentence_tokens(text, 32, 64, _model())
    if len(set(tokens.labels)) < 2:
        st.info(chapter.words("nothing-to-shuffle"), icon=":material/edit:")
        return
    order = shuffled_order(tokens.labels, int(chapter.controls.slider("order", 1, 20, 1)))
    shuffled = tuple(tokens.labels[i] for i in order.tolist())
    before, after = escape(" ".join(tokens.labels)), escape(" ".join(shuffled))
    st.markdown(chapter.words("shuffled", before=before, after=after))
    layers = _fresh_layers(tokens.X.shape[1])
    _shuffled_maps(chapter, layers["attention"], tokens, order, shuffled)
    residuals = {name: shuffled_residual(layer, tokens.X, order) for name, layer in layers.items()}
    names = chapter.words.group("figure")
    summary = ", ".join(f"{names[name]} {residual:.2g}" for name, residual in residuals.items())
    figure = residual_figure(residuals, ORDER_MATTERS, names["order-residual"], names)
    chapter.figure("order", figure, summary=summary)
    with st.container(horizontal=True, key="claims-shuffle"):
        chapter.claim("blind", residuals["attention"], ROUNDING)
        chapter.claim("pooled", pooled_residual(layers["attention"], tokens.X, order), ROUNDING)
        for name in ("recurrent", "convolution", "dilated", "restricted"):
            chapter.claim_at_least("ordered", residuals[name], ORDER_MATTERS, layer=names[name])


def _network(chapter: Chapter, asked: Asked, name: str, names: dict[str, str], sizes: LayerSizes) -> None:
    length = path_length(name, asked.first, asked.last, sizes)
    st.markdown(chapter.words(f"network-{name}", k=sizes.k, r=sizes.r, length=_number(length)))
    chapter.figure(
        f"network-{name}",
        figures.connection_figure(name, asked.first, asked.last, sizes, names),
        n=sizes.n,
        first=asked.first + 1,
        last=asked.last + 1,
        length=_number(length),
    )


def _readout(chapter: Chapter, asked: Asked) -> None:
    """The paths between the two tokens as numbers."""
    lengths = {
        f"{name}_path": _number(path_length(name, asked.first, asked.last, asked.drawn)) for name in ARCHITECTURES
    }
    s = asked.sizes
    distance = asked.last - asked.first
    chapter.text("readout", first=asked.first + 1, last=asked.last + 1, distance=distance, k=s.k, r=s.r, **lengths)


def _begin(sizes: LayerSizes, lengths: list[int], device: torch.device) -> Run:
    def prepare(name: str, n: int) -> Callable[[], object]:
        layer = build_layer(name, sizes, num_heads=_TIMED_HEADS).eval().to(device)
        X = torch.randn(1, n, sizes.d, device=device)
        return lambda: layer(X)

    settings = {"most": sizes.n, "d": sizes.d, "k": sizes.k, "r": sizes.r}
    return Run(measure(ARCHITECTURES, lengths, prepare, device=device), settings, len(ARCHITECTURES) * len(lengths))


def _draw_times(chapter: Chapter, run: Run) -> None:
    names = chapter.words.group("figure")
    sizes = LayerSizes(run.settings["most"], run.settings["d"], run.settings["k"], run.settings["r"])
    lengths = [2**power for power in range(4, sizes.n.bit_length())]
    measured, theory = st.columns(2, gap="medium")
    # While it runs, whole lengths only: a picture that changes with every point has no time to be painted.
    count = len(run.measurements)
    shown = run.measurements[: count - count % len(ARCHITECTURES) if run.state == "running" else count]
    with measured:
        chapter.figure("measured", figures.measured_figure(shown, sizes.n, names), done=len(shown))
    with theory:
        chapter.figure("theory", figures.theory_figure(sizes, lengths, names), d=sizes.d, k=sizes.k, r=sizes.r)
    if run.state != "running" and run.measurements:
        number = st.column_config.NumberColumn(format="%.2f ×")
        table = _growth_table(chapter, run.measurements, sizes)
        columns = dict.fromkeys(list(table.columns)[2:], number)
        st.dataframe(table, hide_index=True, height="content", column_config=columns)
        chapter.look_for("growth")


def _growth_table(chapter: Chapter, measurements: list[Measurement], sizes: LayerSizes) -> pd.DataFrame:
    """What twice the tokens cost at the longest length each layer came to: measured, and by the count."""
    words = chapter.words.group("column")
    rows = []
    for name in ARCHITECTURES:
        own = [m for m in measurements if m.name == name and m.seconds is not None]
        if len(own) < 2:
            continue
        before, after = (
            layer_cost(name, LayerSizes(m.n, sizes.d, sizes.k, sizes.r)).counted for m in (own[-2], own[-1])
        )
        rows.append(
            {
                words["layer"]: chapter.words(f"figure.{name}"),
                words["tokens"]: f"{own[-2].n:,} → {own[-1].n:,}",
                words["measured"]: growth(own[-2], own[-1]),
                words["counted"]: after / before,
            }
        )
    return pd.DataFrame(rows, columns=[words[name] for name in ("layer", "tokens", "measured", "counted")])


def _shuffled_maps(
    chapter: Chapter, layer: nn.Module, tokens: Tokens, order: Tensor, shuffled: tuple[str, ...]
) -> None:
    """Self-attention's map of the sentence and of its words shuffled: the same cells in other places."""
    names = chapter.words.group("figure")
    inputs = {"map-before": (tokens.X, tokens.labels), "map-after": (tokens.X[order], shuffled)}
    for column, (name, (X, labels)) in zip(st.columns(2), inputs.items(), strict=True):
        with record() as trace, torch.no_grad():
            layer(X[None])
        weights = next(iter(trace)).weights(head=0)[0].numpy()
        with column:
            chapter.text(name)
            chapter.figure(name, large_map(weights, labels, "weights", names), count=len(labels))
    chapter.look_for("maps")


@st.cache_data(max_entries=256, show_spinner=False)
def _signal(name: str, first: int, last: int, sizes: LayerSizes, num_layers: int) -> float:
    return signal_strength(name, first, last, sizes, num_layers)


@st.cache_resource(max_entries=4, show_spinner=False)
def _fresh_layers(num_hiddens: int) -> dict[str, nn.Module]:
    """One untrained layer of each kind, the same in every session."""
    sizes = LayerSizes(1, num_hiddens, 3, 4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {name: build_layer(name, sizes, depth=1).eval().requires_grad_(False) for name in ARCHITECTURES}


def _model() -> Translator | None:
    """The shipped translator for its vocabulary; without it words with random vectors do as well."""
    try:
        return translator(MODEL)
    except ValueError:  # no checkpoint, or no such device
        return None


def _number(value: float) -> str:
    """A count as it is, a quotient with one decimal, and what never arrives as the sign for it."""
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
