"""Figures of patches: a patch as a vector, the embedding's filters, and the similarity of positions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from ui.blocks.over_picture import signed_image
from ui.widgets.figure_style import ACCENT, SIGNED_SCALE, VALUES, lay_out

Labels = Mapping[str, str]


def vector_figure(
    pixels: Float[np.ndarray, " length"], token: Float[np.ndarray, " width"], labels: Labels
) -> go.Figure:
    """A patch as the vector of its normalised pixels, and under it the token that the embedding makes of it.

    Args:
        labels: names "pixels", "embedding", "entry" and "value".
    """
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
    """Similarity of one patch's position to every other, -1 to 1.

    Args:
        labels: names "row", "column" and "cosine".
    """
    rows, columns = similarity.shape
    figure = go.Figure(
        go.Heatmap(
            z=similarity.astype(np.float32),
            x=np.arange(1, columns + 1, dtype=np.int32),
            y=np.arange(1, rows + 1, dtype=np.int32),
            zmin=-1,
            zmax=1,
            colorscale=SIGNED_SCALE,
            colorbar={"title": labels["cosine"], "thickness": 12},
            hovertemplate=f"{labels['row']} %{{y}}, {labels['column']} %{{x}}: %{{z:.3f}}<extra></extra>",
        )
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
        labels: names "class" and "probability".
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
