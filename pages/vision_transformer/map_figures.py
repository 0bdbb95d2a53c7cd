"""Values over a picture, layer after layer, the grid it was cut by, and its patches in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float, Int
from PIL import Image
from plotly.subplots import make_subplots
from torch import Tensor

from ui.blocks.over_picture import bare, heatmap_over, lay_under, outline, over_picture_figure
from ui.text.head_names import layer_place
from viz_core.lessons.vision_transformer.patches import shuffle_patches

Labels = Mapping[str, str]


def depth_figure(
    picture: Image.Image,
    layers: Mapping[str, Float[np.ndarray, "layers rows columns"]],
    patch: tuple[int, int] | None,
    labels: Labels,
) -> go.Figure:
    """The same maps after every layer, one at a time, with a button that plays through them.

    Args:
        layers: by their titles, each with as many layers.
        labels: names "row", "column", "weight", "play" and "pause".
    """
    first = {title: values[0] for title, values in layers.items()}
    figure = over_picture_figure(picture, first, patch, labels)
    count = len(next(iter(layers.values())))
    figure.frames = [
        go.Frame(
            name=f"{layer + 1}",
            data=[heatmap_over(values[layer], patch, labels, "weight") for values in layers.values()],
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
    shown = dict(zip(("prefix", "suffix"), layer_place("·").split("·"), strict=True))
    figure.update_layout(
        sliders=[{"steps": steps, "currentvalue": {**shown, "xanchor": "right"}, "x": 0.2, "len": 0.8, "y": -0.02}],
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
    lay_under(figure, picture, grid, 1)
    lines: dict[str, Any] = {"line": {"color": "rgba(255,255,255,0.55)", "width": 1}, "layer": "above"}
    for row in range(rows + 1):
        figure.add_shape(type="line", x0=0.5, x1=columns + 0.5, y0=row + 0.5, y1=row + 0.5, **lines)
    for column in range(columns + 1):
        figure.add_shape(type="line", x0=column + 0.5, x1=column + 0.5, y0=0.5, y1=rows + 0.5, **lines)
    outline(figure, patch, 1)
    figure.update_xaxes(range=[0.5, columns + 0.5])
    figure.update_yaxes(range=[rows + 0.5, 0.5])
    return bare(figure, 1, 380)


def shuffled_picture(picture: Image.Image, patch_size: tuple[int, int], order: Int[Tensor, " patches"]) -> Image.Image:
    """The picture with its patches in another order, as `vision.shuffle_patches` shuffles what the model gets."""
    pixels = torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1)[None].float()
    return Image.fromarray(shuffle_patches(pixels, patch_size, order)[0].permute(1, 2, 0).byte().numpy())
