"""Values over a picture, patch by patch: side by side, layer after layer, and as the grid it was cut by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float, Int
from PIL import Image
from plotly.subplots import make_subplots
from torch import Tensor

from viz_core.figures.style import ACCENT, QUERIES, WEIGHTS_SCALE, lay_out
from viz_core.lessons.vision_transformer.patches import shuffle_patches

Labels = Mapping[str, str]
_COVER = 0.72  # how much of the picture a colour hides, as in the attention view


def over_picture_figure(
    picture: Image.Image,
    maps: Mapping[str, Float[np.ndarray, "rows columns"]],
    patch: tuple[int, int] | None,
    labels: Labels,
    unit: str = "weight",
) -> go.Figure:
    """Maps side by side, each over the same picture and in colours of its own, from 0 to its largest value.

    A patch keeps most of itself by the residual connections: colours go up to the largest of the others.

    Args:
        maps: by their titles.
        patch: row and column of the patch that is read, outlined; None for the class token.
        labels: names "row", "column" and `unit`.
    """
    figure = make_subplots(rows=1, cols=len(maps), subplot_titles=list(maps), horizontal_spacing=0.03)
    for column, values in enumerate(maps.values(), start=1):
        figure.add_trace(_heatmap(values, patch, labels, unit), row=1, col=column)
        _lay_under(figure, picture, values.shape, column)
        if patch is not None:
            _outline(figure, patch, column)
    return _bare(figure, len(maps), 300 if len(maps) > 2 else 380)


def depth_figure(
    picture: Image.Image,
    layers: Mapping[str, Float[np.ndarray, "layers rows columns"]],
    patch: tuple[int, int] | None,
    labels: Labels,
) -> go.Figure:
    """The same maps after every layer, one at a time, with a button that plays through them.

    Args:
        layers: by their titles, each with as many layers.
        labels: names "row", "column", "weight", "layer", "play" and "pause".
    """
    first = {title: values[0] for title, values in layers.items()}
    figure = over_picture_figure(picture, first, patch, labels)
    count = len(next(iter(layers.values())))
    figure.frames = [
        go.Frame(
            name=f"{layer + 1}",
            data=[_heatmap(values[layer], patch, labels, "weight") for values in layers.values()],
            traces=list(range(len(layers))),
        )
        for layer in range(count)
    ]
    still = {"mode": "immediate", "transition": {"duration": 0}, "frame": {"duration": 0, "redraw": True}}
    moving = {"fromcurrent": True, "transition": {"duration": 0}, "frame": {"duration": 900, "redraw": True}}
    steps = [{"label": f"{i + 1}", "method": "animate", "args": [[f"{i + 1}"], still]} for i in range(count)]
    buttons = [
        {"label": labels["play"], "method": "animate", "args": [None, moving]},
        {"label": labels["pause"], "method": "animate", "args": [[None], still]},
    ]
    figure.update_layout(
        sliders=[{"steps": steps, "currentvalue": {"prefix": f"{labels['layer']} "}, "x": 0.2, "len": 0.8, "y": -0.02}],
        updatemenus=[
            {"type": "buttons", "direction": "left", "buttons": buttons, "x": 0, "xanchor": "left", "y": -0.08}
        ],
        height=figure.layout.height + 90,
    )
    return figure


def grid_figure(picture: Image.Image, grid: tuple[int, int], patch: tuple[int, int], labels: Labels) -> go.Figure:
    """The picture cut into patches, one of them outlined; a click on a patch is a click on its middle.

    Args:
        labels: names "row" and "column".
    """
    rows, columns = grid
    figure = make_subplots(rows=1, cols=1)
    middles = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2) + 1
    figure.add_trace(
        go.Scatter(
            x=middles[:, 0].astype(np.int32),
            y=middles[:, 1].astype(np.int32),
            mode="markers",
            marker={"size": 14, "opacity": 0},
            hovertemplate=f"{labels['row']} %{{y}}, {labels['column']} %{{x}}<extra></extra>",
            showlegend=False,
        )
    )
    _lay_under(figure, picture, grid, 1)
    lines: dict[str, Any] = {"line": {"color": "rgba(255,255,255,0.55)", "width": 1}, "layer": "above"}
    for row in range(rows + 1):
        figure.add_shape(type="line", x0=0.5, x1=columns + 0.5, y0=row + 0.5, y1=row + 0.5, **lines)
    for column in range(columns + 1):
        figure.add_shape(type="line", x0=column + 0.5, x1=column + 0.5, y0=0.5, y1=rows + 0.5, **lines)
    _outline(figure, patch, 1)
    figure.update_xaxes(range=[0.5, columns + 0.5])
    figure.update_yaxes(range=[rows + 0.5, 0.5])
    return _bare(figure, 1, 380)


def shuffled_picture(picture: Image.Image, patch_size: tuple[int, int], order: Int[Tensor, "patches"]) -> Image.Image:
    """The picture with its patches in another order, as `vision.shuffle_patches` shuffles what the model gets."""
    pixels = torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1)[None].float()
    return Image.fromarray(shuffle_patches(pixels, patch_size, order)[0].permute(1, 2, 0).byte().numpy())


def _heatmap(
    values: Float[np.ndarray, "rows columns"], patch: tuple[int, int] | None, labels: Labels, unit: str
) -> go.Heatmap:
    rows, columns = values.shape
    others = np.ones(values.shape, dtype=bool)
    if patch is not None and values.size > 1:
        others[patch] = False
    return go.Heatmap(
        z=values.astype(np.float32),
        x=np.arange(1, columns + 1, dtype=np.int32),
        y=np.arange(1, rows + 1, dtype=np.int32),
        zmin=0,
        zmax=max(float(values[others].max()), 1e-12),
        colorscale=WEIGHTS_SCALE,
        opacity=_COVER,
        showscale=False,
        hovertemplate=f"{labels['row']} %{{y}}, {labels['column']} %{{x}}: %{{z:.4f}} {labels[unit]}<extra></extra>",
    )


def _lay_under(figure: go.Figure, picture: Image.Image, grid: Sequence[int], column: int) -> None:
    """The picture beneath, its patches where the cells are; small ones enlarged so that their pixels stay crisp."""
    larger = max(1, 256 // max(picture.size))
    sharp = picture.convert("RGB").resize((picture.width * larger, picture.height * larger), Image.Resampling.NEAREST)
    number = "" if column == 1 else column
    figure.add_layout_image(
        source=sharp,
        xref=f"x{number}",
        yref=f"y{number}",
        x=0.5,
        y=0.5,
        sizex=grid[1],
        sizey=grid[0],
        sizing="stretch",
        layer="below",
    )


def _outline(figure: go.Figure, patch: tuple[int, int], column: int) -> None:
    row, across = patch[0] + 1, patch[1] + 1
    box = {"x0": across - 0.5, "x1": across + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    for colour, width in (("#ffffff", 5), (QUERIES, 2.5)):
        figure.add_shape(type="rect", **box, line={"color": colour, "width": width}, row=1, col=column)


def _bare(figure: go.Figure, count: int, height: int) -> go.Figure:
    """Square cells, the first row on top, no axes: places are read by pointing."""
    lay_out(figure, "", "", height)
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, autorange="reversed", constrain="domain")
    for column in range(1, count + 1):
        number = "" if column == 1 else column
        figure.update_yaxes(scaleanchor=f"x{number}", row=1, col=column)
    figure.update_annotations(font={"size": 13, "color": ACCENT})
    figure.update_layout(margin_t=44)  # titles may take two lines
    return figure
