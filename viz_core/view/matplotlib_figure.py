"""The open map as a figure for a paper: SVG, PDF or PNG, its text as text, drawn by matplotlib."""

import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import FuncNorm, LogNorm, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.layout_engine import ConstrainedLayoutEngine

from viz_core.view.payload import View
from viz_core.view.state import DisplayOptions, ViewState, open_group
from viz_core.view.visible_map import Panel, Positions, Side, file_title, fill, heads_in_rows, lines, made_lines, panels

_POINTS = 7  # of all text
_LINE = 1.2 * _POINTS / 72  # inches that a token's name needs
_SEPARATE = 40  # with no more cells on a side, a hair of paper lies between them
_CELL, _LARGEST, _BAR, _SHORTEST_BAR = 0.28, 9.0, 0.07, 1.6  # inches
_MM = 25.4  # an inch
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


class PaperFigure(Figure):
    """A figure of matplotlib that is saved with its text as text, in the fonts that it was laid out with."""

    fonts: tuple[str, ...] = ()

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save as matplotlib does; what no font here can write is one warning."""
        with _drawing(self.fonts, last=True):
            super().savefig(*args, **options)

    def _repr_png_(self) -> bytes:
        """The value of a notebook's cell."""
        content = BytesIO()
        self.savefig(content, format="png", dpi=144)
        return content.getvalue()


def figure_file(view: View, state: ViewState, ending: str, grid: bool = False, link: str = "") -> bytes:
    """Draw the open map, in the colours it is looked at, as a file of the kind that its name ends in.

    It is drawn as a map also where it is looked at as links or over a picture. The file itself says what it shows.

    Args:
        grid: every head of the open kind instead, each a thumbnail.
        link: where the same view opens, for its caption.
    """
    about = made_lines(view, state, [0]) if grid else lines(view, state, panels(view, state))
    about += [link] if link else []
    figure = (grid_figure if grid else map_figure)(view, state)
    caption = [textwrap.fill(line, int(_SIGNS * figure.get_figwidth())) for line in about]
    with _drawing(figure.fonts, last=True):
        figure.text(0.02, -0.02, "\n".join(caption), va="top", color="#5a6065", parse_math=False)
        content = BytesIO()
        metadata = _metadata(figure, about, ending)
        Figure.savefig(figure, content, format=ending[1:], bbox_inches="tight", metadata=metadata)
    return content.getvalue()


def map_figure(
    view: View,
    state: ViewState,
    *,
    width_mm: float | None = None,
    font: str | None = None,
    block: tuple[Positions, Positions] = (None, None),
    labels: Mapping[str, Sequence[str]] | None = None,
    title: str | None = None,
) -> PaperFigure:
    """The open map with its tokens, scale and title, pinned tokens outlined; both maps where two are compared.

    The arguments are those of `ViewHandle.figure`.
    """
    shown = [_relabelled(panel, labels or {}) for panel in panels(view, state, block)]
    sizes = [panel.shown.weights.shape for panel in shown]
    cell = min(_CELL, _LARGEST / max(max(size) for size in sizes))
    natural = max(2.0, cell * max(columns for _, columns in sizes)) + 1.3
    with _drawing(fonts := _fonts(font)):
        figure = _figure(width_mm, natural, len(shown), fonts)
        axes = figure.subplots(2 * len(shown))
        places = list(zip(axes[::2], axes[1::2], shown, strict=True))
        for each, scale, panel in places:
            _draw(view, state, panel, each, scale)
            each.set_title(file_title(view, panel.group, panel.title) if title is None else title, parse_math=False)
        _fit(figure, places)
    return figure


def grid_figure(
    view: View, state: ViewState, *, width_mm: float | None = None, font: str | None = None, title: str | None = None
) -> PaperFigure:
    """Every head of the open kind as a thumbnail, a row a layer; a cell is the largest of the weights it stands for."""
    group = open_group(view.groups, state)
    layers = [call.overview(_THUMBNAIL)[group.row].numpy() for call in group.calls]
    mosaic = heads_in_rows(layers, _GAP, np.nan)
    heads = max(len(layer) for layer in layers)
    rows, columns = layers[0].shape[1:]
    side = _THUMB_INCHES / max(rows, columns)
    with _drawing(fonts := _fonts(font)):
        figure = _figure(width_mm, 1 + side * mosaic.shape[1], 1, fonts)
        axes, scale = figure.subplots(2)
        norm, palette, ticks = _colours(state.display, any(call.signed for call in group.calls), mosaic)
        mesh = axes.imshow(np.ma.masked_invalid(mosaic), palette, norm=norm, interpolation="nearest", aspect="auto")
        axes.set_frame_on(False)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        names = [fill(view.words["layer_short"], layer=call.layer + 1) for call in group.calls]
        axes.set_yticks([i * (rows + _GAP) + (rows - 1) / 2 for i in range(len(layers))], names)
        names = [fill(view.words["head_short"], head=head + 1) for head in range(heads)]
        axes.set_xticks([j * (columns + _GAP) + (columns - 1) / 2 for j in range(heads)], names)
        axes.set_title(file_title(view, group, view.words["heads"]) if title is None else title, parse_math=False)
        _add_scale(scale, mesh, _bar_label(view, state, "weight"), ticks)
        _fit(figure, [(axes, scale, None)])
    return figure


def _fonts(font: str | None) -> tuple[str, ...]:
    """The families that text is written in, each for signs that those before it lack."""
    installed = set(fontManager.get_font_names())
    if font is not None and font not in installed:
        raise ValueError(f"font: expected the name of an installed font, got {font!r}")
    first = ["DejaVu Sans"] if font in (None, "DejaVu Sans") else [font, "DejaVu Sans"]
    return (*filter(None, first), *(name for name in _MORE_FONTS if name in installed), "sans-serif")


@contextmanager
def _drawing(fonts: Sequence[str], last: bool = False) -> Iterator[None]:
    """Draw with these fonts, text as text; at last warn once of all signs that none of them has."""
    settings: Any = {
        "font.family": list(fonts),
        "font.size": _POINTS,
        "axes.titlesize": _POINTS,
        "axes.labelsize": _POINTS,
    }
    settings |= {"xtick.labelsize": _POINTS, "ytick.labelsize": _POINTS, "axes.linewidth": 0.5, "savefig.dpi": 300}
    with (
        matplotlib.rc_context(settings | {"svg.fonttype": "none", "pdf.fonttype": 42}),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        yield
    _warn_once(caught, last)


def _figure(width_mm: float | None, natural: float, maps: int, fonts: tuple[str, ...]) -> PaperFigure:
    """An empty figure of this width, or its natural one in inches, and far too high."""
    if width_mm is not None and not 20 <= width_mm <= 2000:
        raise ValueError(f"width_mm: expected 20 to 2000, got {width_mm!r}")
    width = natural if width_mm is None else width_mm / _MM
    figure = PaperFigure(figsize=(width, 2 * _LARGEST * maps), layout=ConstrainedLayoutEngine(hspace=0))
    figure.fonts = fonts
    return figure


def _fit(figure: Figure, places: Sequence[tuple[Axes, Axes, Panel | None]]) -> None:
    """Give each map and its scale the height they need, and each side of a map as many names as have room."""
    for _ in range(2):  # the names decide how wide a map is, and that how many names there are
        _lay_out(figure)
        cells = []
        for axes, _, panel in places:
            columns, rows = (abs(np.diff(ends).item()) for ends in (axes.get_xlim(), axes.get_ylim()))
            width = axes.get_position().width * figure.get_figwidth()
            cells.append(min(width / columns, _LARGEST / rows, _CELL if panel else np.inf))
            if panel:
                _name(axes, panel, cells[-1])
    heights, found = [], 0.0
    for (axes, scale, _), cell in zip(places, cells, strict=True):
        columns, rows = (abs(np.diff(ends).item()) for ends in (axes.get_xlim(), axes.get_ylim()))
        heights += [cell * rows, _BAR]
        found += sum(each.get_position().height for each in (axes, scale)) * figure.get_figheight()
        axes.set_aspect("equal")
        width = scale.get_position().width * figure.get_figwidth()
        scale.set_box_aspect(_BAR / min(width, max(cell * columns, _SHORTEST_BAR)))
    grid = places[0][0].get_gridspec()
    if grid is not None:
        grid.set_height_ratios(heights)
    figure.set_figheight(figure.get_figheight() - found + sum(heights))
    _lay_out(figure)  # so that what is drawn starts from places that are almost right


def _lay_out(figure: Figure) -> None:
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def _name(axes: Axes, panel: Panel, cell: float) -> None:
    """Name every n-th token, so that the names of cells this large do not touch."""
    every = max(1, int(np.ceil(_LINE / cell)))
    for axis, side, turned in ((axes.yaxis, panel.shown.queries, 0), (axes.xaxis, panel.shown.keys, 90)):
        places = range(0, len(side.names), every)
        axis.set_ticks([i + 0.5 for i in places], [side.names[i] for i in places], rotation=turned, parse_math=False)


def _relabelled(panel: Panel, labels: Mapping[str, Sequence[str]]) -> Panel:
    """The panel with names of one's own on some sides."""
    if unknown := labels.keys() - {"queries", "keys"}:
        raise ValueError(f"labels: expected 'queries' or 'keys', got {', '.join(map(repr, sorted(unknown)))}")
    sides: Any = {}
    for name, given in labels.items():
        side: Side = getattr(panel.shown, name)
        if len(given) != len(side.names):
            raise ValueError(f"labels: expected {len(side.names)} {name}, as many as are drawn, got {len(given)}")
        sides[name] = replace(side, names=list(map(str, given)))
    return replace(panel, shown=replace(panel.shown, **sides))


def _draw(view: View, state: ViewState, panel: Panel, axes: Axes, scale: Axes) -> None:
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
    _name(axes, panel, _CELL)
    for side, outline in ((shown.queries, axes.axhspan), (shown.keys, axes.axvspan)):
        for i in side.pinned:
            outline(i, i + 1, fill=False, edgecolor=_PINNED, linewidth=1.5, clip_on=False)
    axes.set_ylabel(words["queries"].replace("{label}", group.queries_label), parse_math=False)
    axes.set_xlabel(words["keys"].replace("{label}", group.keys_label), parse_math=False)
    _add_scale(scale, mesh, _bar_label(view, state, "difference" if panel.differs else "weight"), ticks)


def _bar_label(view: View, state: ViewState, what: str) -> str:
    label, scale = view.words[f"bar_{what}"], state.display.scale
    return label if scale == "linear" else fill(view.words[f"bar_{scale}"], what=label)


def _add_scale(axes: Axes, mesh: ScalarMappable, label: str, ticks: Sequence[float]) -> None:
    bar = axes.figure.colorbar(mesh, cax=axes, label=label, orientation="horizontal", ticks=ticks)
    if bar.solids is not None:  # vectors, where matplotlib draws a picture
        bar.solids.set(rasterized=False, edgecolor="face")
    axes.minorticks_off()
    axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])


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


def _warn_once(caught: list[warnings.WarningMessage], last: bool) -> None:
    """Warn as before, but of all signs that no font has in one sentence."""
    missing = ""
    for each in caught:
        if found := _MISSING.search(str(each.message)):
            missing += chr(int(found[1]))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if missing and last:
        signs = "".join(dict.fromkeys(missing))[:20]
        warnings.warn(f"no font here has {signs}: boxes stand there; install one, such as Noto Sans CJK", stacklevel=4)
