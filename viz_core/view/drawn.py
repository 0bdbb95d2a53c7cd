"""The open map as a figure for a paper: SVG, PDF or PNG, its text as text, drawn by matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.colors import LogNorm, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from viz_core.view.map_group import MapGroup
from viz_core.view.map_shown import shown_heads, shown_map
from viz_core.view.payload import View
from viz_core.view.state import ViewState

_MOST_LABELS = 60  # on a side: of more tokens every n-th has its name
_SEPARATE = 40  # with no more cells on a side, a hair of paper lies between them
_CELL, _LARGEST = 0.28, 9.0  # inches
_PALETTES = {"greys": "Greys"}  # by matplotlib's names, where they differ
_PINNED = "#d55e00"
# Tried after the one that comes with matplotlib, for tokens in scripts that it lacks.
_MORE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "PingFang SC",
    "Microsoft YaHei",
    "Arial Unicode MS",
    "Noto Sans",
)


def write_figure(view: View, state: ViewState, path: Path) -> None:
    """Draw the open map, in the colours it is looked at, into a file of the kind that its name ends in.

    It is drawn as a map also where it is looked at as links or over a picture, and alone where it is compared.
    """
    installed = set(fontManager.get_font_names())
    fonts = ["DejaVu Sans", *(name for name in _MORE_FONTS if name in installed)]
    with matplotlib.rc_context({"font.family": fonts, "font.size": 8, "svg.fonttype": "none", "pdf.fonttype": 42}):
        map_figure(view, state).savefig(path, dpi=300, bbox_inches="tight")


def map_figure(view: View, state: ViewState) -> Figure:
    """The open map with its tokens, what is pinned outlined."""
    group, words = next(group for group in view.groups if group.id == state.group), view.words
    shown = shown_map(group, state)
    rows, columns = shown.weights.shape
    cell = min(_CELL, _LARGEST / max(rows, columns))
    figure = Figure(figsize=(max(2.0, cell * columns), max(1.5, cell * rows)))
    axes = figure.add_subplot()
    mesh = axes.pcolormesh(
        shown.weights,
        norm=_norm(state.look.scale),
        cmap=_PALETTES.get(state.look.palette, state.look.palette),
        edgecolors="white" if max(rows, columns) <= _SEPARATE else "none",
        linewidth=0.4,
        rasterized=max(rows, columns) > 4 * _SEPARATE,
    )
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    sides = ((axes.yaxis, shown.queries, 0, axes.axhspan), (axes.xaxis, shown.keys, 90, axes.axvspan))
    for axis, side, turned, outline in sides:
        places = range(0, len(side.names), -(-len(side.names) // _MOST_LABELS))
        axis.set_ticks([i + 0.5 for i in places], [side.names[i] for i in places], rotation=turned, parse_math=False)
        for i in side.pinned:
            outline(i, i + 1, fill=False, edgecolor=_PINNED, linewidth=1.5, clip_on=False)
    axes.set_ylabel(words["queries"].replace("{label}", group.queries_label), parse_math=False)
    axes.set_xlabel(words["keys"].replace("{label}", group.keys_label), parse_math=False)
    axes.set_title(_title(view, group, state), parse_math=False)
    figure.colorbar(mesh, label=words["weight"], fraction=0.05, aspect=30)
    return figure


def _norm(scale: str) -> Normalize:
    """How colour grows with weight, as in the app: by its root, itself, or the last four powers of ten."""
    if scale == "log":
        return LogNorm(1e-4, 1, clip=True)
    return Normalize(0, 1) if scale == "linear" else PowerNorm(0.5, 0, 1)


def _title(view: View, group: MapGroup, state: ViewState) -> str:
    """The head's name, or how many are combined; layers and heads counted from 1, for people."""
    heads = shown_heads(group, state)
    if len(heads) > 1:
        return view.words[f"combined_{state.look.how}"].replace("{count}", str(len(heads)))
    ((layer, head),) = heads
    number = str(group.calls[layer].layer + 1)
    return view.words["head_name"].replace("{layer}", number).replace("{head}", str(head + 1))
