"""Figures of patches, positions, heads by depth, and training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float, Int
from PIL import Image
from plotly.subplots import make_subplots
from torch import Tensor

from ui.blocks.over_picture import bare, lay_under, outline, signed_image
from ui.text.head_names import head_place
from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, VALUES, WEIGHTS_SCALE, Labels, lay_out
from viz_core.lessons.vision_transformer import shuffle_patches


def grid_figure(picture: Image.Image, grid: tuple[int, int], patch: tuple[int, int], labels: Labels) -> go.Figure:
    """The picture cut into patches, one of them outlined; a click on a patch is a click on its middle."""
    rows, columns = grid
    figure = make_subplots(rows=1, cols=1)
    middles = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2) + 1
    traces.dots(
        figure,
        middles[:, 0].astype(np.int32),
        middles[:, 1].astype(np.int32),
        hover=f"{labels['row']} %{{y}}, {labels['column']} %{{x}}",
        size=14,
        marker={"opacity": 0},
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


def vector_figure(
    pixels: Float[np.ndarray, " length"], token: Float[np.ndarray, " width"], labels: Labels
) -> go.Figure:
    """A patch as the vector of its normalised pixels, and under it the token that the embedding makes of it."""
    figure = go.Figure()
    for values, name, colour in ((pixels, labels["pixels"], VALUES), (token, labels["embedding"], ACCENT)):
        figure.add_trace(
            go.Bar(
                x=np.arange(len(values), dtype=np.int32),
                y=values.astype(np.float32),
                name=f"{name} ({len(values)})",
                marker={"color": colour, "line": {"width": 0}},
                hovertemplate="%{x}: %{y:.3f}<extra>" + name + "</extra>",
                xaxis="x" if name == labels["pixels"] else "x2",
                yaxis="y" if name == labels["pixels"] else "y2",
            )
        )
    lay_out(figure, labels["entry"], labels["value"], 380)
    figure.update_layout(
        yaxis={"domain": [0.58, 1]},
        xaxis={"anchor": "y", "title": None},
        yaxis2={"domain": [0, 0.42], "title": labels["value"]},
        xaxis2={"anchor": "y2", "title": labels["entry"]},
        bargap=0.1,
    )
    return figure


def filters_image(filters: Float[Tensor, "count channels height width"], columns: int = 14) -> Image.Image:
    """Filters as small pictures: grey ones in the red and blue of signed numbers, coloured ones in their own colours.

    Each is scaled by its largest entry; a coloured one's zero is middle grey.
    """
    count, channels, height, width = filters.shape
    filters = filters.nan_to_num(0, 0, 0)
    scaled = (filters / filters.abs().amax(dim=(1, 2, 3), keepdim=True).clamp_min(1e-12)).numpy()
    larger = max(1, 48 // max(height, width))
    rows, gap = math.ceil(count / columns), 4
    sheet = np.zeros((rows * (height * larger + gap) - gap, columns * (width * larger + gap) - gap, 4), dtype=np.uint8)
    for i, tile in enumerate(scaled):
        if channels == 1:
            small = signed_image(tile[0], 1.0, side=max(height, width))
        else:
            small = Image.fromarray(((tile.transpose(1, 2, 0) + 1) * 127.5).round().astype(np.uint8))
        large = small.convert("RGBA").resize((width * larger, height * larger), Image.Resampling.NEAREST)
        top, left = (i // columns) * (height * larger + gap), (i % columns) * (width * larger + gap)
        sheet[top : top + height * larger, left : left + width * larger] = np.asarray(large)
    return Image.fromarray(sheet)


def similarity_image(similarity: Float[Tensor, "rows columns rows columns"], side: int = 900) -> Image.Image:
    """Each patch's map of similarities, at the patch's place (Dosovitskiy 2021, figure 7, centre)."""
    rows, columns = similarity.shape[:2]
    cell = max(1, min(side // (rows * (rows + 1)), side // (columns * (columns + 1))))
    height, width = rows * cell, columns * cell
    sheet = np.zeros((rows * (height + cell) - cell, columns * (width + cell) - cell, 4), dtype=np.uint8)
    for row in range(rows):
        for column in range(columns):
            tile = signed_image(similarity[row, column].numpy(), 1.0, side=max(rows, columns))
            large = tile.convert("RGBA").resize((width, height), Image.Resampling.NEAREST)
            top, left = row * (height + cell), column * (width + cell)
            sheet[top : top + height, left : left + width] = np.asarray(large)
    return Image.fromarray(sheet)


def similarity_figure(similarity: Float[np.ndarray, "rows columns"], labels: Labels) -> go.Figure:
    """Similarity of one patch's position to every other, -1 to 1."""
    rows, columns = similarity.shape
    figure = traces.cells(
        go.Figure(),
        similarity,
        hover=f"{labels['row']} %{{y}}, {labels['column']} %{{x}}: %{{z:.3f}}",
        limit=1,
        bar=labels["cosine"],
        x=np.arange(1, columns + 1, dtype=np.int32),
        y=np.arange(1, rows + 1, dtype=np.int32),
    )
    return lay_out(
        figure,
        labels["column"],
        labels["row"],
        380,
        xaxis={"constrain": "domain"},
        yaxis={"autorange": "reversed", "scaleanchor": "x", "constrain": "domain"},
    )


def probabilities_figure(rows: Mapping[str, Sequence[float]], names: Sequence[str], labels: Labels) -> go.Figure:
    """Probabilities of a few labels, several bars each: as it is, shuffled, without positions, without some heads.

    Args:
        rows: at most four, by their names.
    """
    colours = (ACCENT, "#7cc4bb", "#7f7f7f", "#c9c9c9")
    figure = go.Figure(
        [
            go.Bar(
                x=list(names),
                y=np.array(values, dtype=np.float32),
                name=name,
                marker={"color": colour},
                hovertemplate="%{x}: %{y:.4f}<extra>" + name + "</extra>",
            )
            for (name, values), colour in zip(rows.items(), colours, strict=False)
        ]
    )
    return lay_out(figure, labels["class"], labels["probability"], 340, yaxis={"range": [0, 1]}, barmode="group")


def by_depth_figure(
    values: Float[np.ndarray, "layers heads"], uniform: float, opened: tuple[int, int], unit: str, labels: Labels
) -> go.Figure:
    """A measure of every head by its layer; a line marks a head with uniform weights.

    Args:
        uniform: where that line is.
        opened: layer and head that is open, from 0, in the accent colour.
        unit: title of the vertical axis.
    """
    layers, heads = values.shape
    spread = (np.arange(heads) - (heads - 1) / 2) * (0.5 / max(1, heads - 1))
    colours = [
        ACCENT if (layer, head) == opened else CATEGORIES[-1] for layer in range(layers) for head in range(heads)
    ]
    sizes = [15 if (layer, head) == opened else 9 for layer in range(layers) for head in range(heads)]
    figure = traces.dots(
        go.Figure(),
        (np.arange(1, layers + 1)[:, None] + spread).ravel(),
        values.ravel(),
        colours,
        hover=head_place("%{customdata[0]}", "%{customdata[1]}") + ": %{y:.2f}",
        size=sizes,
        customdata=np.stack(np.meshgrid(np.arange(heads), np.arange(layers)), axis=-1).reshape(-1, 2)[:, ::-1] + 1,
    )
    traces.line(
        figure,
        [0.4, layers + 0.6],
        [uniform, uniform],
        "rgba(128,128,128,0.9)",
        labels["uniform"],
        dash="dot",
        showlegend=True,
    )
    return lay_out(
        figure,
        labels["layer"],
        unit,
        height=320,
        xaxis={"dtick": 1, "range": [0.4, layers + 0.6]},
        yaxis={"rangemode": "tozero"},
    )


def curve_figure(curve: Sequence[Mapping[str, float]], labels: Labels) -> go.Figure:
    """Losses and the accuracy on held-out pictures, by epoch."""
    epochs = np.array([point["epoch"] for point in curve], dtype=np.float32)
    figure = go.Figure()
    for name, colour, axis in (
        ("train_loss", CATEGORIES[-1], "y"),
        ("validation_loss", ACCENT, "y"),
        ("validation_accuracy", CATEGORIES[1], "y2"),
    ):
        values, mode = [point[name] for point in curve], "lines+markers"
        traces.line(figure, epochs, values, colour, labels[name], yaxis=axis, mode=mode, hover=None)
    return lay_out(
        figure,
        labels["epoch"],
        labels["loss"],
        380,
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "title": labels["accuracy"],
            "showgrid": False,
            "range": [0, 100],
            "tickmode": "linear",
            "dtick": 20,
        },
        legend={"y": 1.02},
    )


def calibration_figure(bins: Sequence[Mapping[str, float]], labels: Labels) -> go.Figure:
    """Accuracy by confidence, beside the diagonal of a calibrated model."""
    names = ("confidence", "accuracy")
    confidence, accuracy = (np.array([each[name] for each in bins], dtype=np.float32) for name in names)
    figure = go.Figure()
    line = {"color": "#9aa0a6", "dash": "dash"}
    traces.line(figure, [0, 1], [0, 1], name=labels["as-often"], line=line)
    traces.line(
        figure,
        confidence,
        accuracy,
        ACCENT,
        labels["measured"],
        hover=f"%{{x:.1%}}: %{{y:.1%}} · %{{customdata:,}} {labels['pictures']}",
        width=3,
        size=9,
        customdata=[each["pictures"] for each in bins],
    )
    share = {"range": [0, 1.02], "tickformat": ".0%"}
    return lay_out(figure, labels["sure"], labels["right"], 340, xaxis=share, yaxis=share)


def confusion_figure(counts: Int[np.ndarray, "is said"], names: Sequence[str], labels: Labels) -> go.Figure:
    """Test pictures of each label (rows) by predicted label (columns); coloured by the square root of the count."""
    figure = traces.cells(
        go.Figure(),
        np.sqrt(counts),
        hover=f"{labels['is']} %{{y}}, {labels['said']} %{{x}}: %{{text}} {labels['pictures']}",
        gap=1,
        written=counts.astype(np.int32),
        x=list(names),
        y=list(names),
        colorscale=WEIGHTS_SCALE,
    )
    return lay_out(figure, labels["said"], labels["is"], 380, xaxis={"tickangle": -45}, yaxis={"autorange": "reversed"})
