"""A video as a filmstrip, with one map a frame; frames that a model merges share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from PIL import Image
from plotly.subplots import make_subplots

from ui.blocks.over_picture import heatmap_over, lay_under
from ui.widgets.figure_style import ACCENT, KEYS, Labels, lay_out
from viz_core.hub import HubRun, PatchGrid

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
        labels: names "row", "column" and each unit.
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
