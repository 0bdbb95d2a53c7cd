"""One look for every figure: the same quantity has the same colour in every chapter."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

# Okabe-Ito, which colour-blind readers can tell apart; its purple darker, to be read on paper.
QUERIES = "#0072b2"
KEYS = "#d55e00"
VALUES = "#009e73"
WEIGHTS = "#a34b82"  # of bars and lines; a map has `WEIGHTS_SCALE`
CATEGORIES = (QUERIES, KEYS, VALUES, WEIGHTS, "#e69f00", "#56b4e9", "#7a6f00", "#7f7f7f")
WEIGHTS_SCALE = "Viridis"  # weights and other quantities from 0 up
SIGNED_SCALE = "RdBu_r"  # signed values, centred on zero
ACCENT = "#0b8a7f"

_VISIBLE = (0.29, 0.76)  # the part of a scale that can be seen in light and in dark

_CALM = {
    "margin": {"l": 10, "r": 10, "t": 30, "b": 10},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
    "hoverlabel": {"namelength": -1},
}

# Ticks are numbers in full, 10,000: plotly's default is 10k.
_AXIS = {"automargin": True, "exponentformat": "none", "separatethousands": True}

Labels = Mapping[str, str]  # what a figure says, by name: a page reads it from the words of its chapter


def lay_out(
    figure: go.Figure,
    x: str,
    y: str,
    height: int = 360,
    *,
    xaxis: Mapping[str, Any] | None = None,
    yaxis: Mapping[str, Any] | None = None,
    **more: Any,
) -> go.Figure:
    """Axis titles, height and calm margins; backgrounds are left to the page, light or dark.

    The layout is put together first and given to plotly whole: each property it is told by itself costs it as much.

    Args:
        xaxis: what else all horizontal axes say, as in plotly; `yaxis` likewise.
        more: what else the layout says.
    """
    layout = figure.layout.to_plotly_json()
    wanted: dict[str, Any] = {"height": height, **_CALM}
    for letter, title, given in (("x", x, xaxis), ("y", y, yaxis)):
        axes = [name for name in layout if re.fullmatch(f"{letter}axis\\d*", name)] or [f"{letter}axis"]
        wanted |= dict.fromkeys(axes, _merged({"title": {"text": title}, **_AXIS}, given or {}))
    figure.layout = _merged(_merged(layout, wanted), more)
    return figure


def _merged(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two dictionaries recursively; the second one wins."""
    both = {**first, **then}
    inner = [name for name in first.keys() & then.keys() if isinstance(both[name], Mapping)]
    return both | {name: _merged(first[name], then[name]) for name in inner if isinstance(first[name], Mapping)}


def ordered_colours(count: int) -> list[str]:
    """Colours of what has an order, such as layers: none is that of queries, keys, values or weights."""
    return sample_colorscale(WEIGHTS_SCALE, np.linspace(*_VISIBLE, count).tolist())  # type: ignore[no-any-return]


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks for a logarithmic axis, 1, 2 and 5 times powers of ten, that lie around and between two positive numbers.

    To be written in full: of ticks between powers plotly writes the first digit alone, "2" for 0.02.
    """
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 2)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    return [tick for tick in ticks if low / 3 < tick < 3 * high]


def mark_on_log_axis(figure: go.Figure, x: float, label: str) -> go.Figure:
    """A dotted line at x, named, where the horizontal axis is logarithmic (plotly puts such a name at 10^x)."""
    figure.add_vline(x=x, line={"color": "rgba(128,128,128,0.8)", "dash": "dot"})
    return figure.add_annotation(
        x=math.log10(x), y=1, yref="paper", text=label, showarrow=False, xanchor="left", yanchor="top", xshift=4
    )


def token_ticks(names: Sequence[str]) -> dict[str, Any]:
    """Ticks that name the places 0, 1, 2 and so on of an axis."""
    return {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": escape_labels(list(names))}


def named_bars(names: Sequence[str]) -> dict[str, Any]:
    """A vertical axis that names horizontal bars at "0", "1", "2" and so on, the first on top."""
    places = [f"{place}" for place in range(len(names))]
    return {"type": "category", "autorange": "reversed", **token_ticks(names), "tickvals": places}


def escape_labels(tokens: list[str] | tuple[str, ...]) -> list[str]:
    """Tokens as plotly labels, which would otherwise be read as HTML."""
    return [token.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for token in tokens]
