"""Figures of the projection: the rotation of each pair, the matrix, residuals over positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets import traces
from ui.widgets.chart import SQUARE
from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, Labels, lay_out


def matrix_figure(M: Float[np.ndarray, "rows rows"], first: int, pair: int, labels: Labels) -> go.Figure:
    """M as a heatmap, signed around zero, with the block of one pair framed.

    Args:
        M: the matrix, or a square cut out of it along the diagonal.
        first: the dimension at which this cut starts.
        pair: the pair whose block is framed.
    """
    dimensions = np.arange(first, first + len(M), dtype=np.float32)
    figure = traces.cells(
        go.Figure(),
        M,
        hover=labels["entry"].format(row="%{y}", column="%{x}", value="%{z:.4f}"),
        limit=1,
        showscale=True,
        x=dimensions,
        y=dimensions,
        colorbar={
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "thickness": 10,
            "len": 0.5,
            "tickvals": [-1, 0, 1],
        },
    )
    low, high = 2 * pair - 0.5, 2 * pair + 1.5
    figure.add_shape(type="rect", x0=low, x1=high, y0=low, y1=high, line={"color": ACCENT, "width": 3})
    lay_out(
        figure,
        labels["reads"],
        labels["writes"],
        480,
        xaxis={"constrain": "domain", "showgrid": False, "zeroline": False},
        yaxis={
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
        },
    )
    if len(M) <= 16:  # no half dimensions between the whole ones
        figure.update_xaxes(dtick=1).update_yaxes(dtick=1)
    return figure


def residual_figure(residual: Float[np.ndarray, " positions"], bound: float, labels: Labels) -> go.Figure:
    """|M p_i - p_(i + offset)| for each position, under what rounding may cost."""
    figure = go.Figure()
    lifted, floor = lift_zeros(residual)
    traces.dots(
        figure,
        np.arange(len(residual), dtype=np.float32),
        lifted,
        ACCENT,
        labels["residual"],
        hover="i = %{x}: %{customdata:.3g}",
        size=4,
        marker={"opacity": 0.6},
        customdata=residual.astype(np.float32),
    )
    traces.line(
        figure,
        [0, len(residual) - 1],
        np.full(2, bound, dtype=np.float32),
        CATEGORIES[4],
        labels["bound"],
        hover="%{y:.3g}",
        dash="dash",
    )
    return lay_out(figure, labels["position"], labels["largest-residual"], 360, yaxis=_log_y(floor, bound, labels))


def lift_zeros(values: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], float]:
    """Values for a log axis: exact zeros at a floor, a power of ten below all others, which is returned too."""
    above = values[values > 0]
    floor = 10.0 ** (math.floor(math.log10(above.min())) - 1) if len(above) else 1e-18
    return np.where(values == 0, floor, values).astype(np.float32), floor


def _log_y(floor: float, top: float, labels: Labels) -> dict[str, Any]:
    """A log axis from the floor, where exact zeros lie, to above `top`."""
    low, high = round(math.log10(floor)), math.ceil(math.log10(top))
    every = max(1, math.ceil((high - low) / 7))
    powers = list(range(low + every, high + 1, every))
    return {
        "type": "log",
        "range": [low - 0.3, math.log10(top) + 0.5],
        "tickvals": [floor, *(10.0**power for power in powers)],
        "ticktext": [labels["zero"], *(f"10<sup>{power}</sup>".replace("-", "−") for power in powers)],
    }


Rows = Float[np.ndarray, "_ 2"]

QUIET = "rgba(128,128,128,0.55)"
_ARROW = {"symbol": "arrow", "size": 13, "angleref": "previous", "opacity": 1}
_AWAY = 40, 24  # pixels from the circle to the middle of a hand's label, to the side and up: it is wider than high
_CIRCLE = np.stack([f(np.linspace(0, 2 * math.pi, 97)) for f in (np.sin, np.cos)], axis=1)


def rotation_figure(
    path: Rows,
    rotated: Float[np.ndarray, "2"],
    turn: float,
    position: int,
    pair: int,
    labels: Labels,
    with_move: bool = True,
    words: Sequence[str] = (),
) -> go.Figure:
    """One pair on the unit circle: p_i, the turn, and p_(i + offset), which M p_i hits; or p_i alone.

    Across is the sine, up the cosine, so position 0 points to twelve o'clock and later ones go clockwise.

    Args:
        path: the pair (sine, cosine) at position i, at i + offset, and at every whole position between.
        rotated: the pair of M p_i.
        turn: offset times omega_j, radians.
        labels: "turn" says how far that is.
        words: of a sentence; the first is at position 0.
    """
    start, arrived = path[0], path[-1]
    end = position + (len(path) - 1) * (1 if turn >= 0 else -1)
    figure = go.Figure()
    _line(figure, _CIRCLE, QUIET, 1.5)
    if with_move:
        _add_turn(figure, path, turn, (position, end), labels, words)
    hands = [(start, QUERIES, "position"), (arrived, KEYS, "offset")] if with_move else [(start, QUERIES, "position")]
    for hand, colour, part in hands:
        _line(figure, np.stack([np.zeros(2), hand]), colour, 4, arrow=True, part=part)
    if with_move:
        traces.dots(
            figure,
            rotated[:1],
            rotated[1:],
            ACCENT,
            labels["moved"].format(position=_minus(position)),
            hover="%{x:.6f}, %{y:.6f}",
            size=18,
            symbol="circle-open",
            marker={"line": {"width": 2.5}},
            meta="offset",
        )
    labelled = zip(_apart(start, arrived if with_move else -start), (QUERIES, KEYS), (position, end), strict=True)
    for (x, y), colour, where in list(labelled)[: len(hands)]:
        word = f"<br>{words[where]}" if 0 <= where < len(words) else ""
        text = f"<b>{labels['hand'].format(position=_minus(where))}</b>{word}"
        away = {"xshift": _AWAY[0] * x, "yshift": _AWAY[1] * y}
        figure.add_annotation(x=x, y=y, text=text, font={"color": colour, "size": 17}, showarrow=False, **away)
    sine, cosine = labels["sine"].format(dimension=2 * pair), labels["cosine"].format(dimension=2 * pair + 1)
    return lay_out(
        figure, sine, cosine, 500, meta=SQUARE, **_equal_axes((-1.42, 1.42), (-1.42, 1.42), tickvals=[-1, 0, 1])
    )


def _add_turn(
    figure: go.Figure, path: Rows, turn: float, ends: tuple[int, int], labels: Labels, words: Sequence[str]
) -> None:
    """The places between both positions, with their words, and the angle from one to the other."""
    between = np.linspace(*ends, len(path)).round().astype(int).tolist()
    traces.dots(
        figure,
        path[:, 0],
        path[:, 1],
        QUIET,
        labels["between"],
        hover="p<sub>%{customdata}</sub>: %{x:.4f}, %{y:.4f}",
        mode="markers+text",
        text=[words[place] if 0 <= place < len(words) and place not in ends else "" for place in between],
        textposition="middle right",
        size=5,
        legendrank=1002,
        customdata=np.linspace(*ends, len(path), dtype=np.float32),
    )
    spiral = arc(path[0], turn)
    figure.add_scatter(
        x=spiral[:, 0],
        y=spiral[:, 1],
        mode="lines+markers",
        line={"color": ACCENT, "width": 2.5},
        marker={**_ARROW, "color": ACCENT, "size": [0] * (len(spiral) - 1) + [13 if abs(turn) > 0.1 else 0]},
        name=labels["turn"],
        legendrank=1001,
        meta="turn",
        hoverinfo="none",
    )


def in_turns(angle: float) -> str:
    """Format an angle in radians as turns, with enough digits to distinguish it from a whole number."""
    turns = angle / (2 * math.pi)
    return _minus(f"{turns:.3f}" if abs(turns) >= 1 else f"{turns:.3g}")


def pairs_figure(
    start: Rows, arrived: Rows, turns: Float[np.ndarray, " rows"], pairs: Sequence[int], chosen: int, labels: Labels
) -> go.Figure:
    """Many pairs as small clocks in a square, the fastest first.

    Args:
        start, arrived: a row for each pair drawn: (sine, cosine) at position i and at i + offset.
        turns: offset times omega_j of each, radians.
        pairs: their numbers j.
        chosen: the pair to frame, drawn or not.
    """
    columns = math.ceil(math.sqrt(len(pairs)))
    centres = np.array([(2.7 * (k % columns), -3.1 * (k // columns)) for k in range(len(pairs))])
    figure = go.Figure()
    frames = [k for k, pair in enumerate(pairs) if pair == chosen]
    _line(figure, _joined([_CIRCLE + centres[k] for k in range(len(pairs))]), QUIET, 1)
    _line(figure, _joined([_CIRCLE * 1.12 + centres[k] for k in frames]), ACCENT, 2.5)
    arcs = [arc(hand, math.fmod(turn, 2 * math.pi)) for hand, turn in zip(start, turns, strict=True)]
    _line(figure, _joined([piece + centre for piece, centre in zip(arcs, centres, strict=True)]), ACCENT, 1.5)
    for hands, colour, name in ((start, QUERIES, labels["from"]), (arrived, KEYS, labels["to"])):
        _line(
            figure,
            _joined([np.stack([c, c + hand]) for c, hand in zip(centres, hands, strict=True)]),
            colour,
            2.5,
            name,
        )
    figure.add_scatter(
        x=centres[:, 0].astype(np.float32),
        y=(centres[:, 1] - 1.42).astype(np.float32),
        mode="text",
        text=[str(pair) for pair in pairs],
        textfont={"size": 11},
        customdata=np.degrees(turns).astype(np.float32),
        hovertemplate=labels["pair"].format(pair="%{text}", degrees="%{customdata:.2f}") + "<extra></extra>",
        showlegend=False,
    )
    rows = math.ceil(len(pairs) / columns)
    axes = _equal_axes((-1.3, 2.7 * (columns - 1) + 1.3), (-3.1 * (rows - 1) - 1.75, 1.3), visible=False)
    return lay_out(figure, "", "", 480, **axes)


def shown_pairs(num_pairs: int, chosen: int, limit: int = 36) -> list[int]:
    """All pairs, or `limit` of them spread from the fastest to the slowest, the chosen one among them."""
    if num_pairs <= limit:
        return list(range(num_pairs))
    spread = np.linspace(0, num_pairs - 1, limit).round().astype(int)
    if chosen not in spread:
        spread[np.abs(spread - chosen).argmin()] = chosen
    return [int(pair) for pair in spread]


def arc(start: Float[np.ndarray, "2"], turn: float) -> Float[np.ndarray, "points 2"]:
    """From a hand through an angle, clockwise where it is positive; more than one turn winds outwards."""
    angle = math.atan2(start[0], start[1])
    steps = np.linspace(0, 1, 2 + math.ceil(32 * abs(turn) / math.pi))
    turns = abs(turn) / (2 * math.pi)
    radius = 0.4 if turns <= 1 else 0.25 + 0.45 * steps
    return np.stack([radius * f(angle + turn * steps) for f in (np.sin, np.cos)], axis=1).astype(np.float32)


def _line(
    figure: go.Figure,
    points: Rows,
    colour: str,
    width: float,
    name: str | None = None,
    arrow: bool = False,
    part: str | None = None,
) -> None:
    marker = {**_ARROW, "color": colour, "size": [0, 17]} if arrow else None
    figure.add_scatter(
        x=points[:, 0].astype(np.float32),
        y=points[:, 1].astype(np.float32),
        mode="lines+markers" if arrow else "lines",
        line={"color": colour, "width": width},
        marker=marker,
        name=name,
        showlegend=name is not None,
        meta=part,
        hoverinfo="none" if part else "skip",
    )


def _joined(pieces: Sequence[Rows]) -> Rows:
    """Pieces of line as one trace: a row of NaN lifts the pen."""
    gap = np.full((1, 2), np.nan)
    return np.concatenate([part for piece in pieces for part in (piece, gap)] or [gap])


def _apart(first: Float[np.ndarray, "2"], second: Float[np.ndarray, "2"], least: float = 0.34) -> Rows:
    """Where two labels go: on the circle at their hands, moved apart where these nearly coincide."""
    angles = np.array([math.atan2(*first), math.atan2(*second)])
    between = (angles[1] - angles[0] + math.pi) % (2 * math.pi) - math.pi
    push = max(0.0, least - abs(between)) / 2 * (1 if between >= 0 else -1)
    angles += np.array([-push, push])
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def _equal_axes(x: tuple[float, float], y: tuple[float, float], **both: Any) -> dict[str, dict[str, Any]]:
    both |= {"showgrid": False, "zeroline": True, "zerolinecolor": QUIET, "constrain": "domain"}
    return {"xaxis": {"range": x, **both}, "yaxis": {"range": y, "scaleanchor": "x", "constraintoward": "top", **both}}


def _minus(number: object) -> str:
    return str(number).replace("-", "−")
