"""Pictures of linear attention: a signed map, a state, decay, what is returned, and recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out
from viz_core.lessons.linear_attention import CHANCE, LETTERS, Stream

_BAR = {"orientation": "h", "yref": "container", "y": 1, "ypad": 0, "thickness": 10, "len": 0.5, "tickformat": ".2~f"}
"""Above a map, in the margin `_ROOM`: plotly draws a chart twice that has to make room for its colour bar."""
_ROOM = {"t": 40}
_SQUARE = {"showgrid": False, "zeroline": False}


def map_figure(weights: Float[Tensor, "n n"], stream: Stream, time: int, labels: Labels, output: str = "") -> go.Figure:
    """The causal map with one row framed, its question in bold; later rows, which no state has reached, are dimmed.

    Where each token writes one number, keys are unit vectors and no weight is negative: the number stands below the
    letter, and `output` at the end of the row.
    """
    n = len(weights)
    numbers = np.arange(1, n + 1, dtype=np.float32)
    letters = [LETTERS[letter] for letter in stream.written]
    signed = stream.values.shape[1] > 1
    if not signed:
        letters = [
            f"{letter}<br>{value:g}" for letter, value in zip(letters, stream.values[:, 0].tolist(), strict=True)
        ]
    wanted = [f"{t + 1}: {LETTERS[letter]} = ?" for t, letter in enumerate(stream.wanted)]
    wanted[time] = f"<b>{wanted[time]}</b>"
    figure = _heatmap(weights, numbers, numbers, 1.0 if signed else None, labels["weight"])
    sides = {"x0": 0.5, "x1": n + 0.5}
    rows = [{"y0": time + 0.5, "y1": time + 1.5, "line": {"color": ACCENT, "width": 3}}]
    if time + 1 < n:
        rows.append({"y0": time + 1.5, "y1": n + 0.5, "fillcolor": "rgba(128,128,128,0.35)", "line": {"width": 0}})
    figure.layout.shapes = [{"type": "rect", **sides, **row} for row in rows]
    if output:
        at = {"x": n + 0.6, "xanchor": "left", "y": time + 1, "showarrow": False}
        text = f"<b>{LETTERS[stream.wanted[time]]} = {output}</b>"
        figure.add_annotation(text=text, font={"color": ACCENT, "size": 15}, **at)
    return lay_out(
        figure,
        labels["writes"],
        labels["wants"],
        440,
        xaxis={"tickvals": numbers, "ticktext": letters, "tickangle": 0, **_SQUARE},
        yaxis={"tickvals": numbers, "ticktext": wanted, "autorange": "reversed", **_SQUARE},
        margin=_ROOM,
    )


def state_figure(
    state: Float[Tensor, "d v"], limit: float, labels: Labels, height: int = 440, named: bool = True
) -> go.Figure:
    """A state as a heatmap, signed around zero.

    Args:
        limit: the number at the ends of the colour scale, the same at every token.
        named: whether the axes have titles.
    """
    rows, columns = (np.arange(1, size + 1, dtype=np.float32) for size in state.shape)
    figure = _heatmap(state, columns, rows, limit, labels["entry"])
    return lay_out(
        figure,
        labels["value-dimension"] if named else "",
        labels["key-dimension"] if named else "",
        height,
        xaxis={"dtick": 1, **_SQUARE},
        yaxis={"dtick": 1, "autorange": "reversed", **_SQUARE},
        margin=_ROOM,
    )


def numbers_figure(state: Float[Tensor, " letters"], letter: int, limit: float, labels: Labels) -> go.Figure:
    """A state of one number for each letter; the bar of the letter asked for has the accent.

    Args:
        limit: the largest number of any token's state, so that the axis stands still.
    """
    colours = [ACCENT if each == letter else CATEGORIES[7] for each in range(len(LETTERS))]
    numbers = state.tolist()
    figure = traces.bars(go.Figure(), list(LETTERS), numbers, colours, beside=[f"{each:.3g}" for each in numbers])
    return lay_out(figure, labels["letter"], labels["number"], 440, yaxis={"range": [0, 1.1 * limit]})


def _heatmap(
    numbers: Float[Tensor, "rows columns"],
    x: Float[np.ndarray, " columns"],
    y: Float[np.ndarray, " rows"],
    limit: float | None,
    label: str,
) -> go.Figure:
    return traces.cells(
        go.Figure(),
        numbers.float().numpy(),
        hover=label.format(row="%{y}", column="%{x}", value="%{z:.3f}"),
        limit=limit,
        showscale=True,
        gap=1,
        x=x,
        y=y,
        colorbar={**_BAR, "tickvals": [0, 0.5, 1] if limit is None else [-limit, 0, limit]},
    )


def decay_figure(curves: Mapping[str, Float[np.ndarray, " ages"]], labels: Labels) -> go.Figure:
    """The weight that is left of a token, by age, a line for each head."""
    figure = go.Figure()
    for (name, curve), colour in zip(curves.items(), CATEGORIES, strict=False):
        traces.line(figure, np.arange(len(curve), dtype=np.float32), curve, colour, name, hover="%{x}: %{y:.3f}")
    return lay_out(figure, labels["age"], labels["remaining"], 320, yaxis={"range": [0, 1.02]})


def errors_figure(
    errors: Mapping[str, Sequence[float]], letters: Sequence[str], labels: Labels, height: int = 300
) -> go.Figure:
    """How far what is returned for each letter is from its last value, a bar for each rule."""
    figure = go.Figure()
    for (name, values), colour in zip(errors.items(), (CATEGORIES[1], ACCENT), strict=True):
        traces.bars(figure, list(letters), values, colour, name, hover="%{x}: %{y:.3f}")
    return lay_out(figure, labels["letter"], labels["error"], height, barmode="group")


def recall_figure(
    curves: Mapping[str, Sequence[float]], x: Sequence[int], marked: int, labels: Labels, title: str, log: bool = False
) -> go.Figure:
    """Accuracy by number of pairs or by size of the state, a line for each rule, and chance.

    Args:
        marked: the number that the other figure is for; a dotted line.
        log: whether the horizontal axis is logarithmic.
    """
    figure = go.Figure()
    lines = [
        (name, values, colour, "lines+markers", dash)
        for (name, values), colour, dash in zip(
            curves.items(), (CATEGORIES[0], ACCENT, CATEGORIES[1]), ("dot", "solid", "solid"), strict=True
        )
    ]
    chance = (labels["chance"], [CHANCE] * len(x), CATEGORIES[7], "lines", "dash")
    for name, values, colour, mode, dash in (*lines, chance):
        traces.line(figure, x, values, colour, name, dash=dash, mode=mode, hover="%{x}: %{y:.0%}")
    figure.add_vline(x=marked, line={"color": "rgba(128,128,128,0.6)", "dash": "dot"})
    xaxis = {"tickvals": list(x), "tickformat": ",d", **({"type": "log"} if log else {})}
    return lay_out(figure, title, labels["accuracy"], 320, xaxis=xaxis, yaxis={"range": [0, 1.04], "tickformat": ".0%"})
