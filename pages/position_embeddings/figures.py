"""Figures of position schemes: maps, the skew, offsets, grids, rotations and biases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from plotly.subplots import make_subplots

from pages.position_embeddings.tokens import TokenInputs
from ui.blocks.figures import scale_of, token_heatmap
from ui.chapter.chapter import Chapter
from ui.widgets import traces
from ui.widgets.figure_style import CATEGORIES, KEYS, QUERIES, SIGNED_SCALE, Labels, lay_out, token_ticks
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, GridTerms, offsets_of, skew_stages
from viz_core.positional import angular_frequencies


def grid_figure(terms: GridTerms, row: int, column: int, labels: Labels) -> go.Figure:
    """Three grids on one colour scale. Each cell says its offset; the query's cell is framed.

    Points lie over the cells of every grid, invisible but selectable: their customdata is (row, column, value).
    """
    height, width = terms.row_term.shape
    down = _signed(terms.row_offsets.numpy())
    across = _signed(terms.column_offsets.numpy())
    both = np.char.add(np.char.add(down, ", "), across)
    panels = ((terms.row_term.numpy(), down), (terms.column_term.numpy(), across), (terms.total.numpy(), both))
    names = [labels["row-term"], labels["column-term"], labels["sum-term"]]
    figure = make_subplots(rows=1, cols=3, subplot_titles=names, horizontal_spacing=0.05, shared_yaxes=True)
    limit = max(1e-6, max(float(np.abs(values).max()) for values, _ in panels))
    ys, xs = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    for i, (values, offsets) in enumerate(panels, start=1):
        traces.cells(figure, values, gap=1, written=offsets, coloraxis="coloraxis", row=1, col=i)
        points = go.Scatter(
            x=xs.ravel(),
            y=ys.ravel(),
            mode="markers",
            marker={"size": 22, "opacity": 0},
            # As a list: of a binary array a click brings keys.
            customdata=np.stack([ys.ravel(), xs.ravel(), values.ravel()], axis=1).tolist(),
            text=offsets.ravel(),
            hovertemplate="%{text}: %{customdata[2]:+.3f}<extra></extra>",
            showlegend=False,
        )
        figure.add_trace(points, 1, i)
        figure.add_shape(
            type="rect",
            x0=column - 0.5,
            x1=column + 0.5,
            y0=row - 0.5,
            y1=row + 0.5,
            line={"color": QUERIES, "width": 3},
            row=1,
            col=i,
        )
    lay_out(figure, labels["column"], "", height=170 + 38 * height)
    figure.update_yaxes(range=[height - 0.5, -0.5], tickvals=np.arange(height), ticktext=np.arange(height) + 1)
    figure.update_yaxes(title=labels["row"], col=1)
    figure.update_xaxes(range=[-0.5, width - 0.5], tickvals=np.arange(width), ticktext=np.arange(width) + 1)
    bar = {"title": labels["added"], "orientation": "h", "thickness": 10, "y": -0.35, "yanchor": "top"}
    figure.update_layout(
        coloraxis={"colorscale": SIGNED_SCALE, "cmin": -limit, "cmax": limit, "colorbar": bar}, clickmode="event+select"
    )
    return figure


def _signed(offsets: Int[np.ndarray, "height width"]) -> np.ndarray:
    return np.vectorize(lambda o: f"{o:+d}" if o else "0")(offsets).astype(str)


def small_maps(
    maps: Mapping[str, Float[np.ndarray, "n n"]], tokens: Sequence[str], quantity: str, labels: Labels
) -> dict[str, go.Figure]:
    """One figure for each map, without ticks or colour bar; hovering shows query, key and value."""
    # Tick labels are hidden but read by the hover label, so no cell carries its own tokens.
    axis = {"showticklabels": False, "title": {"standoff": 4}, **token_ticks(tokens)}
    return {
        name: lay_out(
            go.Figure(token_heatmap(values, quantity, showscale=False)),
            labels["keys"],
            labels["queries"],
            height=156,
            xaxis=axis,
            yaxis={**axis, "autorange": "reversed"},
            margin={"l": 2, "r": 2, "t": 2, "b": 2},
            font={"size": 11},
        )
        for name, values in maps.items()
    }


def scale_strip(quantity: str, labels: Labels) -> go.Figure:
    """The one colour scale that all small maps share."""
    colours, low, high = scale_of(quantity)
    steps = np.linspace(low, high, 129, dtype=np.float32)
    figure = traces.cells(go.Figure(), steps[None], x=steps, colorscale=colours, zmin=low, zmax=high, hoverinfo="x")
    return lay_out(
        figure, labels[quantity], "", height=88, yaxis={"visible": False}, margin={"l": 10, "r": 10, "t": 4, "b": 54}
    )


Draw: TypeAlias = Callable[[Chapter, TokenInputs], TokenInputs | None]
"""Draws the figures, and returns the inputs of the map below them where a control of theirs changes these."""

OWN_FIGURES: dict[str, Draw] = {}


def own_figures(scheme: str) -> Callable[[Draw], Draw]:
    """Register a function as the figures of a scheme."""

    def register(draw: Draw) -> Draw:
        OWN_FIGURES[scheme] = draw
        return draw

    return register


_PER_ROW, _SPACING, _MAX_PAIRS = 4, 2.7, 8


def hands_figure(
    query_position: int, key_position: int, frequencies: Float[np.ndarray, " pairs"], labels: Labels
) -> go.Figure:
    """A circle for each pair: the hand of a query (blue) and of a key (orange), clockwise from 12 o'clock.

    A hand of frequency omega at position m has the angle m omega; the angle between the hands is (m - n) omega. Of
    more than eight pairs eight are drawn, at even intervals.

    Args:
        frequencies: of a formula or of a trained model, in radians a position.
    """
    pairs = np.arange(0, len(frequencies), max(1, len(frequencies) // _MAX_PAIRS))
    omegas = frequencies[pairs]
    centres = np.array([[_SPACING * (j % _PER_ROW), -1.12 * _SPACING * (j // _PER_ROW)] for j in range(len(omegas))])
    angles = np.linspace(0, 2 * np.pi, 61)
    figure = go.Figure()
    circles = _segments([centre + np.stack([np.sin(angles), np.cos(angles)], axis=1) for centre in centres])
    traces.line(figure, circles["x"], circles["y"], CATEGORIES[-1], width=1)
    for position, colour, name in ((query_position, QUERIES, "query"), (key_position, KEYS, "key")):
        tips = centres + np.stack([np.sin(position * omegas), np.cos(position * omegas)], axis=1)
        figure.add_scatter(
            **_segments([np.stack([centre, tip]) for centre, tip in zip(centres, tips, strict=True)]),
            mode="lines+markers",
            marker={"size": [0, 8, 0] * len(omegas), "opacity": [0, 1, 0] * len(omegas)},
            line={"color": colour, "width": 3},
            name=labels[name],
            customdata=np.repeat(np.degrees(position * omegas) % 360, 3).astype(np.float32),
            hovertemplate=f"{labels[name]}: %{{customdata:.1f}}°<extra></extra>",
        )
    texts = [labels["pair-number"].format(pair=j) for j in pairs]
    traces.dots(figure, centres[:, 0], centres[:, 1] - 1.28, mode="text", text=texts)
    return lay_out(
        figure,
        labels["second-component"],
        labels["first-component"],
        height=80 + 150 * -(-len(omegas) // _PER_ROW),
        xaxis={"showticklabels": False, "showgrid": False, "zeroline": False},
        yaxis={
            "showticklabels": False,
            "showgrid": False,
            "zeroline": False,
            "scaleanchor": "x",
            "constrain": "domain",
        },
    )


def _segments(lines: list[Float[np.ndarray, "points 2"]]) -> dict[str, Float[np.ndarray, " all_points"]]:
    """Several lines as one trace, with a gap after each."""
    gap = np.full((1, 2), np.nan)
    points = np.concatenate([part for line in lines for part in (line, gap)]).astype(np.float32)
    return {"x": points[:, 0], "y": points[:, 1]}


def pairs_figure(query_position: int, key_position: int, num_hiddens: int, base: float, labels: Labels) -> go.Figure:
    """The hands of the pairs of d dimensions, pair j with frequency omega_j = base^(-2j/d)."""
    return hands_figure(query_position, key_position, angular_frequencies(num_hiddens, base).numpy(), labels)


def decay_figure(
    offsets: Int[np.ndarray, " n"], products: Float[np.ndarray, " n"], here: int, labels: Labels
) -> go.Figure:
    """q . k by offset; the offset chosen is marked."""
    figure = go.Figure()
    figure.add_scatter(
        x=offsets,
        y=products.astype(np.float32),
        name=labels["product"],
        line={"color": QUERIES},
        hovertemplate="%{y:.3f}",
    )
    figure.add_vline(x=here, line={"color": KEYS, "width": 1.5})
    return lay_out(figure, labels["signed-offset"], labels["product"], height=340, hovermode="x unified")


_PADDING = "#9aa0a6"


def skew_figure(num_tokens: int, stage: str, labels: Labels) -> go.Figure:
    """One stage.

    Every stage is drawn from its own upper left corner, at the same height of a row.

    Raises:
        ValueError: if there is no such stage.
    """
    if stage not in STAGES:
        raise ValueError(f"stage: expected one of {', '.join(STAGES)}, got {stage!r}")
    entries = skew_stages(num_tokens)[stage]
    figure = _entries_figure(entries, num_tokens, labels)
    height = 150 + (num_tokens + 1) * (38 if num_tokens <= 6 else 26)
    return lay_out(
        figure,
        labels["column"],
        labels["row"],
        height=height,
        xaxis={"range": [-0.5, entries.shape[1] - 0.5]},
        yaxis={"range": [num_tokens + 0.5, -0.5], "showgrid": False, "tickvals": list(range(len(entries)))},
        margin={"t": 44},
        title=_title(labels[f"stage-{stage}"]),
    )


def _entries_figure(entries: Int[np.ndarray, "rows columns"], num_tokens: int, labels: Labels) -> go.Figure:
    offsets = offsets_of(entries, num_tokens)
    row = (entries - 1) // (2 * num_tokens - 1)
    readable = entries.shape[1] <= 60
    gap, texts = (1, "%{text}") if readable else (0, "")
    names = np.vectorize(lambda o: "" if np.isnan(o) else "0" if o == 0 else f"{o:+.0f}")(offsets)
    figure = traces.cells(
        go.Figure(),
        np.where(entries == 0, 1, np.nan),
        hover=labels["padding"],
        text=np.where(entries == 0, "0", ""),
        texttemplate=texts,
        colorscale=[[0, _PADDING], [1, _PADDING]],
        opacity=0.45,
        xgap=gap,
        ygap=1,
    )
    return traces.cells(
        figure,
        offsets,
        hover=f"{labels['offset']} %{{text}} · {labels['query']} %{{customdata}}",
        limit=max(1, num_tokens - 1),
        text=names,
        texttemplate=texts,
        customdata=row,
        xgap=gap,
        ygap=1,
    )


def _title(text: str) -> dict[str, object]:
    place = {"x": 0, "xanchor": "left", "xref": "paper", "y": 0.98, "yanchor": "top"}
    return {"text": text, "font": {"size": 14}, **place}


# Shaw 2018, table 2: BLEU of English-German newstest 2013 by clipping distance k.
