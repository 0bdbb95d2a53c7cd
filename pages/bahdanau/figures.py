"""Pictures of the Bahdanau chapter: the map of its steps, quality by sentence length, the book's diagrams."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots
from torch import Tensor

from ui.blocks.diagram import Arrow, Box, diagram
from ui.widgets import traces
from ui.widgets.chart import named_parts
from ui.widgets.figure_style import (
    ACCENT,
    CATEGORIES,
    KEYS,
    QUERIES,
    SIGNED_SCALE,
    VALUES,
    Labels,
    escape_labels,
    lay_out,
    token_ticks,
)
from viz_core.lessons.bahdanau import DecoderSteps

NAMED = 14  # words of a source whose weights are written in the cells


def map_figure(
    weights: Float[Tensor, "steps words"], step: int, source: Sequence[str], target: Sequence[str], labels: Labels
) -> go.Figure:
    """Weights over the source words, a row for each word written up to this step, which is framed."""
    cells = weights.numpy().astype(np.float32)
    cells[step + 1 :] = np.nan
    numbers = [["" for _ in source] for _ in target]
    if len(source) <= NAMED:
        numbers[step] = [f"{weight:.2f}" if weight >= 0.005 else "" for weight in cells[step].tolist()]
    hover = f"%{{y}} → %{{x}}: %{{z:.4f}}<extra>{labels['weight']}</extra>"
    figure = traces.cells(go.Figure(), cells, hover=hover, gap=1, written=numbers, meta="weight", textfont={"size": 11})
    row = {"x0": -0.5, "x1": len(source) - 0.5, "y0": step - 0.5, "y1": step + 0.5}
    figure.add_shape(type="rect", **row, line={"color": QUERIES, "width": 3})
    axis = {"showgrid": False}
    return lay_out(
        figure,
        labels["source"],
        labels["written"],
        height=100 + 19 * min(len(target), 40),
        xaxis={**token_ticks(source), "tickangle": -35, **axis, "tickfont": {"color": KEYS}},
        yaxis={**token_ticks(target), "range": [len(target) - 0.5, -0.5], **axis, "tickfont": {"color": QUERIES}},
        meta=named_parts(x="key", y="word"),
    )


def choice_figure(likeliest: Sequence[tuple[str, float]], chosen: int | None, labels: Labels) -> go.Figure:
    """The likeliest next words, the likeliest on top; the one that was written in the accent colour.

    Args:
        chosen: place of the written word in `likeliest`, or None where it is not among them.
    """
    places = list(range(len(likeliest)))
    figure = traces.bars(
        go.Figure(),
        [p for _, p in likeliest],
        places,
        [ACCENT if place == chosen else "#9aa0a6" for place in places],
        hover="%{x:.4f}",
        across=True,
        beside=[f"{p:.2f}" for _, p in likeliest],
    )
    words = escape_labels([word for word, _ in likeliest])
    return lay_out(
        figure,
        labels["probability"],
        "",
        height=200,
        xaxis={"range": [0, 1.12], "tickvals": [0, 0.5, 1]},
        yaxis={"autorange": "reversed", "tickmode": "array", "tickvals": places, "ticktext": words},
        meta=named_parts(whole="word"),
    )


def states_figure(steps: DecoderSteps, step: int, labels: Labels) -> go.Figure:
    """The query state and the context vector, one cell per dimension, on one signed scale.

    Both are outputs of GRU layers or means of them, so every number lies between -1 and 1.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.16)
    rows = ((labels["query"], steps.queries[step], QUERIES), (labels["context"], steps.contexts[step], VALUES))
    for place, (name, values, colour) in enumerate(rows, start=1):
        figure.add_heatmap(
            z=values.numpy().astype(np.float32)[None],
            zmin=-1,
            zmax=1,
            colorscale=SIGNED_SCALE,
            colorbar={"thickness": 12, "tickvals": [-1, 0, 1]},
            showscale=place == 1,
            hovertemplate=f"{labels['dimension']} %{{x}}: %{{z:.3f}}<extra>{name}</extra>",
            row=place,
            col=1,
        )
        figure.update_yaxes(tickvals=[0], ticktext=[name], tickfont={"color": colour, "size": 13}, row=place, col=1)
    lay_out(figure, "", "", height=190)
    return figure.update_xaxes(title=labels["dimension"], row=2, col=1)


def balanced_figure(models: Mapping[str, Sequence[tuple[int, int, float, float, float]]], labels: Labels) -> go.Figure:
    """BLEU by length of the source with 95% intervals, one line a model: (from, to, BLEU, low, high) for each bin."""
    figure = go.Figure()
    styles = zip((CATEGORIES[7], KEYS), _SYMBOLS, (-0.08, 0.08), strict=True)
    for (name, bins), (colour, symbol, aside) in zip(models.items(), styles, strict=False):
        _, _, value, low, high = np.array(bins, dtype=np.float32).T
        figure.add_scatter(
            x=np.arange(len(bins), dtype=np.float32) + np.float32(aside),
            y=value,
            error_y={"type": "data", "symmetric": False, "array": high - value, "arrayminus": value - low},
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": 2.5},
            marker={"size": 9, "symbol": symbol},
            hovertemplate=f"%{{y:.1f}}<extra>{name}</extra>",
        )
    ends = [f"{low}–{high}" for low, high, *_ in next(iter(models.values()))]
    return lay_out(
        figure,
        labels["length"],
        labels["bleu"],
        height=380,
        xaxis={"tickvals": list(range(len(ends))), "ticktext": ends},
        yaxis={"rangemode": "tozero"},
    )


def curves_figure(models: Mapping[str, Sequence[Mapping[str, float]]], epoch: str, loss: str) -> go.Figure:
    """The validation loss by epoch, one line a model; both axes by their titles."""
    figure = go.Figure()
    for (name, curve), colour, symbol in zip(models.items(), (CATEGORIES[7], KEYS), _SYMBOLS, strict=False):
        epochs, losses = ([point[each] for point in curve] for each in ("epoch", "validation_loss"))
        traces.line(figure, epochs, losses, colour, name, symbol=symbol, hover=None)
    return lay_out(figure, epoch, loss, height=320)


_SYMBOLS = ("square", "circle")


_STEPS = 3


def plain_model(labels: Labels) -> go.Figure:
    """Diagram: the decoder receives only the encoder's last state."""
    boxes = _encoder() | {"state": Box(labels["state"], 3, 1, ACCENT, 0.5)} | _decoder()
    arrows = [*_along("h"), Arrow(f"h{_STEPS}", "state", 0.6), Arrow("state", "s1", 0.6), *_along("s"), *_words()]
    return diagram(boxes, arrows)


def attention_model(labels: Labels) -> go.Figure:
    """Diagram: before each word, the decoder's last state attends to all states of the encoder."""
    boxes = _encoder() | _decoder() | {"attention": Box(labels["attention"], 3, -0.2, ACCENT, 0.5, width=1.5)}
    arrows = [*_along("h"), *_along("s"), *_words()]
    arrows += [Arrow(f"h{i}", "attention", strength) for i, strength in ((1, 0.1), (2, 0.7), (3, 0.2))]
    arrows += [Arrow("attention", f"s{i + 1}", 0.3) for i in range(_STEPS)]
    return diagram(boxes, arrows)


def _encoder() -> dict[str, Box]:
    words = {f"x{i + 1}": Box(f"x<sub>{i + 1}</sub>", i, 2, KEYS, 0) for i in range(_STEPS)}
    return words | {f"h{i + 1}": Box(f"h<sub>{i + 1}</sub>", i, 1, KEYS) for i in range(_STEPS)}


def _decoder() -> dict[str, Box]:
    words = {f"y{i + 1}": Box(f"y<sub>{i + 1}</sub>", 4 + i, 2, VALUES, 0) for i in range(_STEPS)}
    return words | {f"s{i + 1}": Box(f"s<sub>{i + 1}</sub>", 4 + i, 1, QUERIES) for i in range(_STEPS)}


def _along(letter: str) -> list[Arrow]:
    return [Arrow(f"{letter}{i}", f"{letter}{i + 1}") for i in range(1, _STEPS)]


def _words() -> list[Arrow]:
    return [Arrow(f"x{i + 1}", f"h{i + 1}") for i in range(_STEPS)] + [
        Arrow(f"s{i + 1}", f"y{i + 1}") for i in range(_STEPS)
    ]
