"""Figures of the lab: heads at a glance, frames of a video, heads off, position schemes, and sinks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from PIL import Image
from plotly.subplots import make_subplots
from torch import Tensor

from ui.blocks.over_picture import heatmap_over, lay_under
from ui.text.head_names import head_place
from ui.widgets import traces
from ui.widgets.figure_style import (
    ACCENT,
    CATEGORIES,
    KEYS,
    Labels,
    escape_labels,
    lay_out,
    mark_on_log_axis,
    token_ticks,
)
from ui.widgets.heatmap import Heatmap, signed_heatmap, to_pixels
from viz_core.hub import HubRun, PatchGrid
from viz_core.hub.runs.positions import MAX_ROWS, cosines
from viz_core.lab.heads_off import Change
from viz_core.lab.sinks import Windowed


def fingerprint_figure(values: Float[np.ndarray, "layers heads"], measure: str, labels: Labels) -> go.Figure:
    """One measure of every head: layers in rows, the first on top; heads in columns, both counted from 1."""
    layers, heads = values.shape
    figure = traces.cells(
        go.Figure(),
        values,
        hover=head_place("%{y}", "%{x}") + ": %{z:.3f}",
        most=float(np.nanmax(values, initial=1e-6)),
        bar=labels.get(f"unit-{measure}", labels["weight"]),
        gap=2,
        x=np.arange(1, heads + 1, dtype=np.int32),
        y=np.arange(1, layers + 1, dtype=np.int32),
        texttemplate="%{z:.2f}" if heads <= 16 and layers <= 16 else None,
    )
    return lay_out(
        figure,
        labels["head"],
        labels["layer"],
        height=110 + 34 * min(layers, 24),
        xaxis={"dtick": max(1, heads // 16), "showgrid": False},
        yaxis={"dtick": max(1, layers // 16), "showgrid": False, "autorange": "reversed"},
    )


def corner_figure(
    weights: Float[np.ndarray, "queries keys"], queries: Sequence[str], keys: Sequence[str], labels: Labels
) -> go.Figure:
    """The map of one head with its tokens along both sides, without a colour bar: two stand side by side."""
    figure = traces.cells(go.Figure(), weights, hover="%{y} → %{x}: %{z:.4f}")
    return lay_out(
        figure,
        labels["keys"],
        labels["queries"],
        height=380,
        xaxis={"tickangle": -45, **token_ticks(keys)},
        yaxis={"autorange": "reversed", **token_ticks(queries)},
    )


_COLUMNS = 4
_HEIGHT, _LARGER = 160, 270  # of a strip; with one or two frames in it


def frames_figure(
    run: HubRun,
    names: Sequence[str],
    maps: Mapping[str, tuple[Float[np.ndarray, " tokens"], str]],
    sinks: Sequence[int],
    labels: Labels,
) -> go.Figure:
    """Maps over the frames of a video, at most four frames in a row; each kind of map has one scale for all frames.

    Args:
        names: of the frames of each grid of patches.
        maps: by their titles, values of all tokens of the run with their unit; each kind is a row under the last.
        sinks: tokens that are outlined.
    """
    if run.video is None:
        raise ValueError("run: expected one with a video")
    columns = min(_COLUMNS, len(run.patches))
    strips, kinds = -(-len(run.patches) // columns), len(maps)
    titles = [""] * (strips * kinds * columns)
    for number, name in enumerate(names):
        titles[number // columns * kinds * columns + number % columns] = name
    size = {"rows": strips * kinds, "cols": columns, "horizontal_spacing": 0.02, "vertical_spacing": 0.08 / strips}
    figure = make_subplots(**size, subplot_titles=titles)
    for kind, (title, (values, unit)) in enumerate(maps.items()):
        most = max(float(values[grid.places].max()) for grid in run.patches)
        for number, grid in enumerate(run.patches):
            strip, column = divmod(number, columns)
            row = strip * kinds + kind + 1
            axis = (row - 1) * columns + column + 1
            picture = _shown(run, grid)
            field = heatmap_over(grid.over(values), None, labels, unit)
            field.zmax = max(most, 1e-12)
            figure.add_trace(field, row=row, col=column + 1)
            lay_under(figure, picture, grid.shape, axis)
            aspect = picture.height / grid.shape[0] / (picture.width / grid.shape[1])
            figure.update_yaxes(scaleanchor=f"x{axis if axis > 1 else ''}", scaleratio=aspect, row=row, col=column + 1)
            mark_sinks(figure, grid, sinks, column + 1, row)
            if column == 0:
                beside = {"x": 0, "xref": "paper", "xanchor": "right", "yref": f"y{axis if axis > 1 else ''} domain"}
                figure.add_annotation(text=title, textangle=-90, y=0.5, yanchor="middle", showarrow=False, **beside)
    lay_out(figure, "", "", (_HEIGHT if columns > 2 else _LARGER) * strips * kinds)
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, autorange="reversed", constrain="domain")
    figure.update_annotations(font={"size": 12, "color": ACCENT})
    figure.update_layout(margin_t=30, margin_l=24)
    return figure


def _shown(run: HubRun, grid: PatchGrid) -> Image.Image:
    """The mean of the frames that share a map: they are merged before the model's first layer."""
    assert run.video is not None
    frames = [np.asarray(run.video.frames[i], dtype=np.float32) for i in grid.frames]
    return Image.fromarray(np.mean(frames, axis=0).round().astype(np.uint8))


def mark_sinks(figure: go.Figure, grid: PatchGrid, sinks: Sequence[int], column: int, row: int) -> None:
    """Outline the patches of a grid that are sinks."""
    for y, x in np.argwhere(np.isin(grid.places, sinks)):
        box = {"x0": x + 0.5, "x1": x + 1.5, "y0": y + 0.5, "y1": y + 1.5}
        for colour, width in (("#ffffff", 5), (KEYS, 2.5)):
            figure.add_shape(type="rect", **box, line={"color": colour, "width": width}, row=row, col=column)


def beside_figure(changes: Sequence[Change], title: str, labels: Labels) -> go.Figure:
    """Probabilities with all heads and without some, two bars a word, the likeliest on top.

    Args:
        title: of the vertical axis.
    """
    places = [f"{place}" for place in range(len(changes))]
    figure = go.Figure()
    for when, name, colour in (("after", "without-heads", CATEGORIES[-1]), ("before", "with-heads", ACCENT)):
        shares = [getattr(change, when) for change in changes]
        traces.bars(figure, shares, places, colour, labels[name], hover="%{x:.5f}", across=True)
    names = escape_labels([change.label for change in changes])
    return lay_out(
        figure,
        labels["probability"],
        title,
        height=110 + 40 * len(changes),
        barmode="group",
        legend={"traceorder": "reversed"},
        yaxis={"type": "category", "autorange": "reversed", "tickmode": "array", "tickvals": places, "ticktext": names},
    )


def distances_figure(names: Sequence[str], distances: Float[np.ndarray, " tokens"], labels: Labels) -> go.Figure:
    """Cosine distance of each token's last state, one bar per token."""
    places = list(range(len(names)))
    heights = distances.astype(np.float32)
    figure = traces.bars(go.Figure(), places, heights, ACCENT, hover="%{y:.4f}")
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": escape_labels(list(names)), "tickangle": -45}
    return lay_out(figure, labels["token"], labels["distance"], height=320, xaxis=ticks if len(names) <= 64 else {})


_EXACT_CELLS = 2**18  # larger tables are sent in 8 bits a cell


def table_heatmap(table: Float[Tensor, "positions width"], labels: Labels) -> Heatmap:
    """The first rows of a table as the model has it; its darkest colour is what 99.5 % of its numbers stay below."""
    rows = table[:MAX_ROWS]
    flat = rows.abs().flatten()
    limit = float(flat.kthvalue(max(1, math.ceil(0.995 * flat.numel()))).values) or 1.0
    if rows.numel() <= _EXACT_CELLS:
        return signed_heatmap(rows, labels["position"], labels["dimension"], limit=limit)
    return Heatmap(to_pixels(rows, -limit, limit), -limit, limit, labels["position"], labels["dimension"], digits=4)


def cosine_heatmap(table: Float[Tensor, "positions width"], labels: Labels) -> Heatmap:
    """Cosine similarity of the rows of a table."""
    return signed_heatmap(cosines(table), labels["position_i"], labels["position_j"], limit=1.0, square=True)


def wavelengths_figure(frequencies: Float[np.ndarray, " pairs"], room: int | None, labels: Labels) -> go.Figure:
    """Tokens until each rotary pair has gone round once, on a log axis; a line where the model's room ends."""
    waves = 2 * np.pi / np.maximum(frequencies.astype(np.float64), 1e-12)
    figure = traces.line(
        go.Figure(),
        waves,
        np.arange(len(waves), dtype=np.int32),
        ACCENT,
        hover=labels["pair-number"].format(pair="%{y}") + ": %{x:,.1f}",
        size=5,
    )
    if room is not None:
        mark_on_log_axis(figure, float(room), labels["room"])
    return lay_out(figure, labels["wavelength"], labels["pair"], height=340, xaxis={"type": "log", "dtick": 1})


def bias_figure(bias: Float[np.ndarray, "heads offsets"], reach: int, head: int, labels: Labels) -> go.Figure:
    """The bias by offset: one head in the accent colour, the others behind it."""
    offsets = np.arange(-reach, bias.shape[1] - reach, dtype=np.int32)
    figure = go.Figure()
    for i in [*(i for i in range(len(bias)) if i != head), head]:
        traces.line(
            figure,
            offsets,
            bias[i],
            ACCENT if i == head else "rgba(128,128,128,0.45)",
            f"{labels['head']} {i + 1}",
            hover=f"{labels['head']} {i + 1}, %{{x}}: %{{y:.3f}}",
            width=3 if i == head else 1,
            showlegend=False,
        )
    return lay_out(figure, labels["signed-offset"], labels["added"], height=340)


def perplexities_figure(found: Windowed, names: Mapping[str, str], labels: Labels) -> go.Figure:
    """Three bars; the window that lost the first tokens in another colour.

    Args:
        names: of "full", "sliding" and "with-first".
    """
    heights = np.array([found.full, found.sliding, found.with_first], dtype=np.float32)
    figure = traces.bars(
        go.Figure(),
        [names["full"], names["sliding"], names["with-first"]],
        heights,
        [ACCENT, CATEGORIES[1], ACCENT],
        hover="%{y:,.3f}",
        beside=[f"{height:,.2f}" for height in heights],
    )
    return lay_out(figure, labels["way"], labels["perplexity"], height=320, yaxis={"rangemode": "tozero"})
