"""The open map as a figure for a paper: SVG, PDF or PNG, its text as text, drawn by matplotlib."""

import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import FuncNorm, LogNorm, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from viz_core.view.payload import View
from viz_core.view.state import DisplayOptions, ViewState, open_group
from viz_core.view.visible_map import Panel, file_title, fill, heads_in_rows, lines, made_lines, panels

_MAX_LABELS = 60  # on a side: of more tokens every n-th has its name
_SEPARATE = 40  # with no more cells on a side, a hair of paper lies between them
_CELL, _LARGEST = 0.28, 9.0  # inches
_PALETTES = {"greys": "Greys"}  # by matplotlib's names, where they differ
_SIGNED = "RdBu_r"
_THUMBNAIL, _GAP, _THUMB_INCHES = 64, 2, 0.8  # cells on a side, cells between two, inches
_DECADES = 4  # powers of ten that a logarithmic scale spans
_TICKS = {"linear": [0, 0.5, 1], "sqrt": [0, 0.1, 0.5, 1], "log": [1e-4, 1e-2, 1]}
_PINNED = "#d55e00"
_SIGNS = 15  # of the caption, an inch
# Tried after the one that comes with matplotlib, for tokens in scripts that it lacks.
_MORE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "PingFang SC",
    "Microsoft YaHei",
    "Arial Unicode MS",
    "Noto Sans",
)
_MISSING = re.compile(r"Glyph (\d+) .* missing from font")


def figure_file(view: View, state: ViewState, ending: str, grid: bool = False, link: str = "") -> bytes:
    """Draw the open map, in the colours it is looked at, as a file of the kind that its name ends in.

    It is drawn as a map also where it is looked at as links or over a picture. The file itself says what it shows.

    Args:
        grid: every head of the open kind instead, each a thumbnail.
        link: where the same view opens, for its caption.
    """
    installed = set(fontManager.get_font_names())
    fonts = ["DejaVu Sans", *(name for name in _MORE_FONTS if name in installed)]
    about = made_lines(view, state, [0]) if grid else lines(view, state, panels(view, state))
    about += [link] if link else []
    with (
        matplotlib.rc_context({"font.family": fonts, "font.size": 8, "svg.fonttype": "none", "pdf.fonttype": 42}),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        figure = (grid_figure if grid else map_figure)(view, state)
        caption = [textwrap.fill(line, int(_SIGNS * figure.get_figwidth())) for line in about]
        figure.text(0.02, -0.02, "\n".join(caption), va="top", color="#5a6065", parse_math=False)
        content = BytesIO()
        figure.savefig(
            content, format=ending[1:], dpi=300, bbox_inches="tight", metadata=_metadata(figure, about, ending)
        )
    _warn_once(caught)
    return content.getvalue()


def map_figure(view: View, state: ViewState) -> Figure:
    """The open map with its tokens, scale and title, pinned tokens outlined; both maps where two are compared."""
    shown = panels(view, state)
    sizes = [panel.shown.weights.shape for panel in shown]
    cell = min(_CELL, _LARGEST / max(max(size) for size in sizes))
    heights = [max(1.5, cell * rows) + 1 for rows, _ in sizes]
    width = max(2.0, cell * max(columns for _, columns in sizes)) + 1.6
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    axes = figure.subplots(len(shown), squeeze=False, height_ratios=heights)[:, 0]
    for panel, each in zip(shown, axes, strict=True):
        _draw(view, state, panel, figure, each)
    return figure


def grid_figure(view: View, state: ViewState) -> Figure:
    """Every head of the open kind as a thumbnail, a row a layer; a cell is the largest of the weights it stands for."""
    group = open_group(view.groups, state)
    layers = [call.overview(_THUMBNAIL)[group.row].numpy() for call in group.calls]
    mosaic = heads_in_rows(layers, _GAP, np.nan)
    heads = max(len(layer) for layer in layers)
    rows, columns = layers[0].shape[1:]
    side = _THUMB_INCHES / max(rows, columns)
    figure = Figure(figsize=(1.8 + side * mosaic.shape[1], 1.2 + side * mosaic.shape[0]), layout="constrained")
    axes = figure.subplots()
    norm, palette, ticks = _colours(state.display, any(call.signed for call in group.calls), mosaic)
    mesh = axes.imshow(np.ma.masked_invalid(mosaic), palette, norm=norm, interpolation="nearest")
    axes.set_frame_on(False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    names = [fill(view.words["layer_short"], layer=call.layer + 1) for call in group.calls]
    axes.set_yticks([i * (rows + _GAP) + (rows - 1) / 2 for i in range(len(layers))], names)
    names = [fill(view.words["head_short"], head=head + 1) for head in range(heads)]
    axes.set_xticks([j * (columns + _GAP) + (columns - 1) / 2 for j in range(heads)], names)
    axes.set_title(file_title(view, group, view.words["heads"]), parse_math=False)
    _add_scale(figure, axes, mesh, view.words[f"bar_weight_{state.display.scale}"], ticks)
    return figure


def _draw(view: View, state: ViewState, panel: Panel, figure: Figure, axes: Axes) -> None:
    words, group, shown = view.words, panel.group, panel.shown
    most, display = max(shown.weights.shape), state.display
    norm, palette, ticks = _colours(display, panel.signed, shown.weights)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(shown.weights),
        norm=norm,
        cmap=palette,
        edgecolors="white" if most <= _SEPARATE else "none",
        linewidth=0.4,
        rasterized=most > 4 * _SEPARATE,
    )
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    sides = ((axes.yaxis, shown.queries, 0, axes.axhspan), (axes.xaxis, shown.keys, 90, axes.axvspan))
    for axis, side, turned, outline in sides:
        places = range(0, len(side.names), -(-len(side.names) // _MAX_LABELS))
        axis.set_ticks([i + 0.5 for i in places], [side.names[i] for i in places], rotation=turned, parse_math=False)
        for i in side.pinned:
            outline(i, i + 1, fill=False, edgecolor=_PINNED, linewidth=1.5, clip_on=False)
    axes.set_ylabel(words["queries"].replace("{label}", group.queries_label), parse_math=False)
    axes.set_xlabel(words["keys"].replace("{label}", group.keys_label), parse_math=False)
    axes.set_title(file_title(view, panel.group, panel.title), parse_math=False)
    label = words[f"bar_{'difference' if panel.differs else 'weight'}_{display.scale}"]
    _add_scale(figure, axes, mesh, label, ticks)


def _add_scale(figure: Figure, axes: Axes, mesh: ScalarMappable, label: str, ticks: Sequence[float]) -> None:
    bar = figure.colorbar(mesh, ax=axes, label=textwrap.fill(label, 30), fraction=0.05, aspect=30, ticks=ticks)
    bar.ax.minorticks_off()
    bar.ax.set_yticks(ticks, [f"{tick:.3g}" for tick in ticks])


def _colours(display: DisplayOptions, signed: bool, values: np.ndarray) -> tuple[Normalize, str, list[float]]:
    """How colour grows with weight, to the largest if signed: by its root, itself, or the last four powers of ten.

    Its norm, its palette, and the ticks of its scale.
    """
    if not signed:
        power = {"linear": 1, "sqrt": 0.5}.get(display.scale)
        norm = LogNorm(10**-_DECADES, 1, clip=True) if power is None else PowerNorm(power, 0, 1)
        return norm, _PALETTES.get(display.palette, display.palette), _TICKS[display.scale]
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0  # 1 where nothing differs
    grown: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
        "linear": (np.abs, np.abs),
        "sqrt": (lambda x: np.sqrt(np.abs(x)), np.square),
        "log": (_in_decades, lambda y: 10 ** (_DECADES * (np.abs(y) - 1))),
    }
    there, back = grown[display.scale]
    both = (lambda x: np.sign(x) * there(x / limit), lambda y: np.sign(y) * back(y) * limit)
    return FuncNorm(both, vmin=-limit, vmax=limit), _SIGNED, [-limit, 0, limit]


def _in_decades(x: np.ndarray) -> np.ndarray:
    """0 at the smallest weight that has colour, 1 at 1."""
    return np.clip(1 + np.log10(np.maximum(np.abs(x), 1e-30)) / _DECADES, 0, 1)


def _metadata(figure: Figure, about: Sequence[str], ending: str) -> dict[str, str]:
    """What the file says of itself, by the names of its kind."""
    title = " | ".join(filter(None, (axes.get_title() for axes in figure.axes)))
    by = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}[ending]
    return {"Title": title, "Subject" if ending == ".pdf" else "Description": "\n".join(about), by: "Attention Atlas"}


def _warn_once(caught: list[warnings.WarningMessage]) -> None:
    """Warn as before, but of all signs that no font has in one sentence."""
    missing = ""
    for each in caught:
        if found := _MISSING.search(str(each.message)):
            missing += chr(int(found[1]))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if missing:
        signs = "".join(dict.fromkeys(missing))[:20]
        warnings.warn(f"no font here has {signs}: boxes stand there; install one, such as Noto Sans CJK", stacklevel=4)
