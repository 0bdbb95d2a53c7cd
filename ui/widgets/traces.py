"""Lines, dots, bars and cells of figures in the style of all chapters.

Each function adds one trace to a figure and returns the figure. It takes what differs from figure to figure; all else
is passed on under plotly's own names, `row` and `col` of a subplot too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ui.widgets.figure_style import SIGNED_SCALE, WEIGHTS_SCALE


def line(
    figure: go.Figure,
    x: Any,
    y: Any,
    colour: str | None = None,
    name: str | None = None,
    *,
    hover: str | None = "",
    width: float | None = None,
    dash: str | None = None,
    shape: str | None = None,
    size: Any = None,
    symbol: str | None = None,
    **more: Any,
) -> go.Figure:
    """Add a line; with a `size` or a `symbol` its points are marked too. Without a name it is not in the legend.

    Args:
        hover: what the pointer reads, as in plotly's `hovertemplate`: nothing unless given, plotly's own text if None.
    """
    style = {"mode": "lines", "line": _given(color=colour, width=width, dash=dash, shape=shape)}
    if size or symbol:
        style |= {"mode": "lines+markers", "marker": _given(size=size, symbol=symbol)}
    return _add(figure, go.Scatter, name, hover, {"x": _float32(x), "y": _float32(y), **style}, more)


def dots(
    figure: go.Figure,
    x: Any,
    y: Any,
    colour: Any = None,
    name: str | None = None,
    *,
    hover: str | None = "",
    size: Any = None,
    symbol: Any = None,
    **more: Any,
) -> go.Figure:
    """Add points without a line; `name` and `hover` as for `line`."""
    style = {"mode": "markers", "marker": _given(color=colour, size=size, symbol=symbol)}
    return _add(figure, go.Scatter, name, hover, {"x": _float32(x), "y": _float32(y), **style}, more)


def bars(
    figure: go.Figure,
    x: Any,
    y: Any,
    colour: Any = None,
    name: str | None = None,
    *,
    hover: str | None = "",
    beside: Sequence[str] | None = None,
    across: bool = False,
    **more: Any,
) -> go.Figure:
    """Add bars; `name` and `hover` as for `line`.

    Args:
        beside: what is written at the end of each bar.
        across: whether they run from left to right.
    """
    style: dict[str, Any] = {"marker": _given(color=colour), "orientation": "h" if across else None}
    if beside is not None:
        style |= {"text": beside, "textposition": "outside", "cliponaxis": False}
    return _add(figure, go.Bar, name, hover, {"x": _float32(x), "y": _float32(y), **style}, more)


def cells(
    figure: go.Figure,
    z: Any,
    *,
    hover: str | None = "",
    limit: float | None = None,
    most: float | None = 1.0,
    bar: str | None = None,
    gap: float = 0,
    written: Any = None,
    **more: Any,
) -> go.Figure:
    """Add the cells of a map, in colours of weights from 0 to `most`; `hover` as for `line`, and blank where NaN.

    Args:
        limit: colours are those of signed values, from -limit to limit; of weights unless given.
        most: the weight of the lightest colour; that of the largest cell if None.
        bar: title of the colour bar; there is none unless given.
        gap: pixels between cells.
        written: text in the cells.
    """
    style: dict[str, Any] = {"z": _float32(z), "hoverongaps": False}
    if "coloraxis" not in more:
        style |= {"showscale": False} if bar is None else {"colorbar": {"title": bar, "thickness": 12}}
    if more.keys().isdisjoint(("coloraxis", "colorscale")):
        weights = {"colorscale": WEIGHTS_SCALE, "zmin": 0, "zmax": most}
        style |= weights if limit is None else {"colorscale": SIGNED_SCALE, "zmin": -limit, "zmax": limit}
    if gap:
        style |= {"xgap": gap, "ygap": gap}
    if written is not None:
        style |= {"text": written, "texttemplate": "%{text}"}
    return _add(figure, go.Heatmap, None, hover, style, more)


def _add(
    figure: go.Figure, kind: Any, name: str | None, hover: str | None, style: dict[str, Any], more: dict[str, Any]
) -> go.Figure:
    place = {each: more.pop(each) for each in ("row", "col") if each in more}
    named = {"showlegend": False} if name is None else {"name": name}
    pointed_at: dict[str, Any] = {"hoverinfo": "skip"} if hover == "" else {}
    if hover:
        pointed_at = {"hovertemplate": f"{hover}<extra></extra>"}
    both = {each: {**style[each], **more[each]} for each in ("line", "marker") if each in style and each in more}
    return figure.add_trace(kind(**{**named, **pointed_at, **style, **more, **both}), **place)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _float32(values: Any) -> Any:
    """The same in 32 bits, where they are numbers with decimals: half as much to send."""
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype.kind == "f" else values
