"""The grid by which a picture was cut, and its patches in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Int
from PIL import Image
from plotly.subplots import make_subplots
from torch import Tensor

from ui.blocks.over_picture import bare, lay_under, outline
from viz_core.lessons.vision_transformer.patches import shuffle_patches

Labels = Mapping[str, str]


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
