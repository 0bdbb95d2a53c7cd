"""Parts of the page: sizes, costs as a table, timings, shuffled words, and the book's numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
import torch
from PIL import Image
from torch import Tensor, nn

from pages.architectures.figures import curves_figure, measured_figure, pairs_figure
from pages.architectures.network_figure import centred_figure, graph_figure
from ui.blocks.figures import residual_figure, token_map
from ui.blocks.over_picture import tiles, weights_image
from ui.blocks.stopwatch import StepwiseRun, stopwatch
from ui.blocks.translation import sentence_input
from ui.chapter.chapter import Chapter
from ui.compute.benchmark import Measurement, growth, measure
from ui.compute.models import translator_or_none
from ui.text.markdown import escape
from ui.text.translations import device_name, explain
from viz_core.lessons.architectures import (
    ARCHITECTURES,
    LayerSizes,
    crossover,
    first_head_weights,
    fresh_layers,
    layer_cost,
    longest_path,
    path_length,
    path_matrix,
    pooled_residual,
    self_attention_shape,
    shuffled_residual,
    timed_call,
)
from viz_core.pretrained.samples import default_words
from viz_core.pretrained.token_vectors import Tokens, sentence_tokens, shuffled_order
from viz_core.runtime.device import best_device, describe_device


def self_attention(chapter: Chapter) -> None:
    """Show self-attention as a graph and a centred convolution beside it, with the book's numbers of both."""
    chapter.text("self")
    labels = chapter.words.group("figure")
    for column, name in zip(st.columns(2, gap="large"), ("graph", "centred"), strict=True):
        with column:
            st.markdown(chapter.words(name))
            chapter.figure(name, graph_figure(7, labels) if name == "graph" else centred_figure(labels))
    chapter.source_card("own-shape", lambda: [float(size) for size in self_attention_shape()])
    chapter.source_card("five-tokens", lambda: path_length("convolution", 0, 4, LayerSizes(5, 8, 3, 3)))


_WORDS = default_words()
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
        n = controls.select_slider("n", _LENGTHS, len(_WORDS) - 1)  # without the full stop
        d = controls.select_slider("d", (8, 16, 32, 64, 128, 256, 512, 1024, 2048), 512)
        r = controls.select_slider("r", (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128, 256, 512), 4)
    words = _WORDS[:n]
    labels = dict(enumerate(words, start=1))
    with for_one:
        one = controls.select("from", tuple(labels), 1, labels.__getitem__) - 1
    with for_other:
        other = controls.select("to", tuple(labels), len(words), labels.__getitem__) - 1
    if n > len(words):
        st.caption(chapter.words("drawn", drawn=len(words), n=f"{n:,}"))
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


MODEL = "transformer-en-fr"
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
ORDER_MATTERS = 1e-3  # far above rounding, far below what any layer here does

_fresh_layers = st.cache_resource(max_entries=4, show_spinner=False)(fresh_layers)


def shuffle(chapter: Chapter) -> None:
    """The permutation test: shuffle the words before a layer or after it."""
    text = sentence_input(chapter)
    chapter.text("shuffle")
    tokens = sentence_tokens(text, 32, 64, translator_or_none(MODEL))
    if len(set(tokens.labels)) < 2:
        st.info(chapter.words("nothing-to-shuffle"), icon=":material/edit:")
        return
    order = shuffled_order(tokens.labels, int(chapter.controls.slider("order", 1, 20, 1)))
    shuffled = tuple(tokens.labels[i] for i in order.tolist())
    before, after = escape(" ".join(tokens.labels)), escape(" ".join(shuffled))
    st.markdown(chapter.words("shuffled", before=before, after=after))
    layers = _fresh_layers(tokens.X.shape[1])
    chapter.lazy("shuffled", lambda: _shuffled(chapter, layers, tokens, order, shuffled), 860)


def _shuffled(
    chapter: Chapter, layers: dict[str, nn.Module], tokens: Tokens, order: Tensor, shuffled: tuple[str, ...]
) -> None:
    """Draw the maps before and after, and how much each layer's output changes."""
    _shuffled_maps(chapter, layers["attention"], tokens, order, shuffled)
    residuals = {name: shuffled_residual(layer, tokens.X, order) for name, layer in layers.items()}
    names = chapter.words.group("figure")
    summary = [f"{names[name]} {residual:.2g}" for name, residual in residuals.items()]
    figure = residual_figure(residuals, ORDER_MATTERS, names["order-residual"], names)
    chapter.figure("order", figure, summary=summary)
    with chapter.claim_row("claims-shuffle"):
        chapter.claim("blind", residuals["attention"], ROUNDING)
        chapter.claim("pooled", pooled_residual(layers["attention"], tokens.X, order), ROUNDING)
        for name in ("recurrent", "convolution", "dilated", "restricted"):
            chapter.claim_at_least("ordered", residuals[name], ORDER_MATTERS, layer=names[name])


def _shuffled_maps(
    chapter: Chapter, layer: nn.Module, tokens: Tokens, order: Tensor, shuffled: tuple[str, ...]
) -> None:
    """Self-attention's map of the sentence and of its words shuffled: the same cells in other places."""
    names = chapter.words.group("figure")
    inputs = {"map-before": (tokens.X, tokens.labels), "map-after": (tokens.X[order], shuffled)}
    for column, (name, (X, labels)) in zip(st.columns(2), inputs.items(), strict=True):
        weights = first_head_weights(layer, X).numpy()
        with column:
            chapter.text(name)
            chapter.figure(name, token_map(weights, labels, "weights", names), count=len(labels))
    chapter.guidance("maps")


_TIMED_HEADS = 4


def timing(chapter: Chapter, inputs: SizeInputs) -> None:
    """Real layers timed on this machine, beside the counted multiplications."""
    chapter.text("stopwatch")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        most = chapter.controls.choice("most", (256, 1024, 4096), 1024)
        width = chapter.controls.choice("width", (64, 128, 256), 128)
    try:
        device = best_device()
    except ValueError as error:  # the message names those there are
        st.error(explain(error), icon=":material/memory:")
        return
    lengths = [2**power for power in range(4, most.bit_length())]
    sizes = LayerSizes(most, width, inputs.sizes.k, inputs.sizes.r)
    chapter.text("stopwatch-where", device=device_name(describe_device(device)))
    stopwatch(chapter, "stopwatch", lambda: _begin(sizes, lengths, device), lambda run: _draw_times(chapter, run))


def _begin(sizes: LayerSizes, lengths: list[int], device: torch.device) -> StepwiseRun[Measurement]:
    def prepare(name: str, n: int) -> Callable[[], object]:
        return timed_call(name, n, sizes, _TIMED_HEADS, device)

    settings = {"most": sizes.n, "d": sizes.d, "k": sizes.k, "r": sizes.r}
    return StepwiseRun(
        measure(ARCHITECTURES, lengths, prepare, device=device), settings, len(ARCHITECTURES) * len(lengths)
    )


def _draw_times(chapter: Chapter, run: StepwiseRun[Measurement]) -> None:
    names = chapter.words.group("figure")
    sizes = LayerSizes(run.settings["most"], run.settings["d"], run.settings["k"], run.settings["r"])
    # While it runs, whole lengths only: a picture that changes with every point has no time to be painted.
    count = len(run.measurements)
    shown = run.measurements[: count - count % len(ARCHITECTURES) if run.state == "running" else count]
    chapter.figure("measured", measured_figure(shown, sizes.n, names), done=len(shown))
    if run.state != "running" and run.measurements:
        number = st.column_config.NumberColumn(format="localized")
        table = _growth_table(chapter, run.measurements, sizes)
        columns = dict.fromkeys(list(table.columns)[2:], number)
        st.dataframe(table, hide_index=True, height="content", column_config=columns)
        chapter.guidance("growth")


def _growth_table(chapter: Chapter, measurements: list[Measurement], sizes: LayerSizes) -> pd.DataFrame:
    """The factor by which twice the tokens slow each layer at its longest length, measured and counted."""
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
                words["measured"]: round(growth(own[-2], own[-1]), 2),
                words["counted"]: round(after / before, 2),
                words["spread"]: round(max((m.slowest or 0) / (m.seconds or 1) for m in own[-2:]), 2),
            }
        )
    return pd.DataFrame(rows, columns=[words[name] for name in ("layer", "tokens", "measured", "counted", "spread")])


MAX_PAIRED = 48
_CURVE = tuple(2**power for power in range(1, 17))


def table(chapter: Chapter, inputs: SizeInputs) -> None:
    """Draw Table 1 with the reader's sizes, and with exact counts."""
    values: dict[str, object] = {}
    for name in ARCHITECTURES:
        cost = layer_cost(name, inputs.sizes)
        values |= {
            f"{name}_order": f"{cost.order:,}",
            f"{name}_counted": f"{cost.counted:,}",
            f"{name}_sequential": f"{cost.sequential:,}",
            f"{name}_path": number(cost.path),
            f"{name}_exact": number(longest_path(name, inputs.sizes)),
        }
    s = inputs.sizes
    chapter.text("table", n=f"{s.n:,}", d=f"{s.d:,}", k=s.k, r=f"{s.r:,}", **values)


def curves(chapter: Chapter, inputs: SizeInputs) -> None:
    """Draw one column of the table over n, with the length at which self-attention stops being cheaper."""
    names, s = chapter.words.group("figure"), inputs.sizes
    shown = chapter.controls.choice("show", ("order", "counted", "sequential", "path"), "order")
    meets = {name: crossover(name, s) for name in ("recurrent", "convolution", "restricted")}
    inside = {name: n for name, n in meets.items() if _CURVE[0] <= n <= _CURVE[-1]} if shown == "order" else {}
    figure = partial(curves_figure, shown, _CURVE, s, inside, names)
    summary = [f"{names[name]} {number(getattr(layer_cost(name, s), shown))}" for name in ARCHITECTURES]
    chapter.figure("curves", figure, shown=names[shown], n=f"{s.n:,}", summary=summary)
    crossings = {name: f"{n:,}" for name, n in meets.items()}
    chapter.text(f"curves-{shown}", d=f"{s.d:,}", k=s.k, r=f"{s.r:,}", n=f"{s.n:,}", **crossings)


def pairs(chapter: Chapter, inputs: SizeInputs) -> None:
    """The path between every pair of tokens."""
    n = min(inputs.sizes.n, MAX_PAIRED)
    sizes = LayerSizes(n, inputs.sizes.d, inputs.sizes.k, inputs.sizes.r)
    names = chapter.words.group("figure")
    chapter.text("pairs", n=n)
    summary = [f"{names[name]} {number(longest_path(name, sizes))}" for name in ARCHITECTURES]

    def draw() -> go.Figure:
        return pairs_figure({name: path_matrix(name, sizes).numpy() for name in ARCHITECTURES}, names)

    chapter.figure("pairs", draw, height=870, n=n, summary=summary)


def gallery_picture() -> Image.Image:
    """How far every token is from every other: recurrence, convolutions, restricted and full self-attention."""
    sizes, narrow = LayerSizes(20, 8, 3, 5), LayerSizes(20, 8, 2, 5)
    kinds = [("recurrent", sizes), ("convolution", sizes), ("restricted", sizes)]
    kinds += [("dilated", narrow), ("dilated", sizes), ("attention", sizes)]
    lengths = torch.stack([path_matrix(name, size) for name, size in kinds])
    lengths = lengths.masked_fill(lengths.isinf(), 0)  # where no way leads
    return weights_image(tiles(lengths / lengths.amax(), columns=3).numpy())
