"""Values over a picture, patch by patch, and maps as picture files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import torch
from einops import rearrange
from jaxtyping import Float
from PIL import Image
from plotly.colors import get_colorscale, hex_to_rgb, sequential, unlabel_rgb
from plotly.subplots import make_subplots
from torch import Tensor

from ui.widgets.figure_style import ACCENT, QUERIES, SIGNED_SCALE, WEIGHTS_SCALE, Labels, lay_out

_COVER = 0.5  # how much of the picture a colour hides, as in the attention view


def over_picture_figure(
    picture: Image.Image,
    maps: Mapping[str, Float[np.ndarray, "rows columns"]],
    patch: tuple[int, int] | None,
    labels: Labels,
    unit: str = "weight",
    aspect: float = 1.0,
    lowest: float = 0.0,
) -> go.Figure:
    """Maps side by side, each over the same picture and in colours of its own, from `lowest` to its largest value.

    A patch keeps most of itself by the residual connections: colours go up to the largest of the others.

    Args:
        maps: by their titles.
        patch: row and column of the patch that is read, outlined; None for the class token.
        labels: names "row", "column" and `unit`.
        aspect: height of the picture's patches for a width of 1; of the first map's, where they differ.
    """
    figure = make_subplots(rows=1, cols=len(maps), subplot_titles=list(maps), horizontal_spacing=0.03)
    for column, values in enumerate(maps.values(), start=1):
        figure.add_trace(heatmap_over(values, patch, labels, unit, lowest), row=1, col=column)
        lay_under(figure, picture, values.shape, column)
        if patch is not None:
            outline(figure, patch, column)
    rows, columns = next(iter(maps.values())).shape
    ratios = [aspect * rows * values.shape[1] / (columns * values.shape[0]) for values in maps.values()]
    return bare(figure, len(maps), 300 if len(maps) > 2 else 380, ratios)


def heatmap_over(
    values: Float[np.ndarray, "rows columns"],
    patch: tuple[int, int] | None,
    labels: Labels,
    unit: str,
    lowest: float = 0.0,
) -> go.Heatmap:
    """Colours over patches, up to the largest of all but the patch that is read."""
    rows, columns = values.shape
    others = np.ones(values.shape, dtype=bool)
    if patch is not None and values.size > 1:
        others[patch] = False
    return go.Heatmap(
        z=values.astype(np.float32),
        x=np.arange(1, columns + 1, dtype=np.int32),
        y=np.arange(1, rows + 1, dtype=np.int32),
        zmin=lowest,
        zmax=max(float(values[others].max()), lowest + 1e-12),
        colorscale=WEIGHTS_SCALE,
        opacity=_COVER,
        showscale=False,
        hovertemplate=f"{labels['row']} %{{y}}, {labels['column']} %{{x}}: %{{z:.4f}} {labels[unit]}<extra></extra>",
    )


def lay_under(figure: go.Figure, picture: Image.Image, grid: Sequence[int], column: int) -> None:
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


def outline(figure: go.Figure, patch: tuple[int, int], column: int) -> None:
    """A frame around a patch of the map in this column."""
    row, across = patch[0] + 1, patch[1] + 1
    box = {"x0": across - 0.5, "x1": across + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    for colour, width in (("#ffffff", 5), (QUERIES, 2.5)):
        figure.add_shape(type="rect", **box, line={"color": colour, "width": width}, row=1, col=column)


def bare(figure: go.Figure, count: int, height: int, ratios: Sequence[float] = ()) -> go.Figure:
    """Cells that are square, or as high as `ratios` say; the first row on top, no axes: places are read by pointing."""
    lay_out(figure, "", "", height)
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, autorange="reversed", constrain="domain")
    for column in range(1, count + 1):
        number = "" if column == 1 else column
        ratio = ratios[column - 1] if ratios else 1
        figure.update_yaxes(scaleanchor=f"x{number}", scaleratio=ratio, row=1, col=column)
    figure.update_annotations(font={"size": 13, "color": ACCENT})
    figure.update_layout(margin_t=44)  # titles may take two lines
    return figure


def weights_image(weights: Float[np.ndarray, "queries keys"], side: int = 480, root: bool = True) -> Image.Image:
    """Weights 0 to 1 in viridis, one crisp square a weight, at most `side` pixels on the longer side.

    Args:
        root: colour by the square root of the weight, so that small weights are told apart.
    """
    value = np.clip(weights, 0, 1) ** (0.5 if root else 1.0)
    return _paint(value, sequential.Viridis, side)


def over_picture_image(picture: Image.Image, weights: Float[np.ndarray, "rows columns"]) -> Image.Image:
    """Weights over the picture whose patches they are of, in colours up to the largest."""
    colours = weights_image(weights / max(float(weights.max()), 1e-12), root=False)
    under = picture.convert("RGB").resize(colours.size, Image.Resampling.NEAREST)
    return Image.blend(under, colours, _COVER)


def signed_image(values: Float[np.ndarray, "rows columns"], limit: float, side: int = 480) -> Image.Image:
    """Values from -limit to limit in the red and blue of signed quantities, one crisp square a value."""
    return _paint(
        np.clip(values / limit, -1, 1) / 2 + 0.5, [colour for _, colour in get_colorscale(SIGNED_SCALE)], side
    )


def _paint(fractions: Float[np.ndarray, "rows columns"], colours: Sequence[str], side: int) -> Image.Image:
    """Fractions from 0 to 1 in evenly spaced colours, NaN as 0, at most `side` pixels on the longer side."""
    fractions = np.nan_to_num(fractions)
    stops = np.array([hex_to_rgb(c) if c.startswith("#") else unlabel_rgb(c) for c in colours], dtype=np.float64)
    place = np.linspace(0, 1, len(stops))
    pixels = np.stack([np.interp(fractions, place, stops[:, c]) for c in range(3)], axis=-1).round().astype(np.uint8)
    cell = max(1, side // max(fractions.shape))
    size = cell * fractions.shape[1], cell * fractions.shape[0]
    return Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST)


def tiles(maps: Float[Tensor, "count n n"], columns: int) -> Float[Tensor, "rows columns"]:
    """Maps laid out in rows of so many, one empty cell between neighbours."""
    apart = torch.nn.functional.pad(maps, (0, 1, 0, 1))
    return rearrange(apart, "(row column) i j -> (row i) (column j)", column=columns)[:-1, :-1]
