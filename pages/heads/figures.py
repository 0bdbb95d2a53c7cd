"""Figures of heads: any measure against any other, and narrow data against broad data."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from ui.compute.heads import HeadTable
from ui.text.head_names import head_place, layer_place
from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out

_SYMBOLS = ("circle", "square", "diamond")


def heads_figure(
    tables: Mapping[str, HeadTable],
    measures: tuple[str, str],
    titles: Sequence[str],
    kinds: Labels,
    chosen: str,
    raw: bool = False,
) -> go.Figure:
    """Every head as a point with the intervals of both means; a colour for each layer, a symbol for each kind.

    Args:
        kinds: names of the kinds of maps.
        chosen: the head that is ringed, as in links.
        raw: whether shares of attention are drawn as they are, with what chance gives.
    """
    figure, colours = go.Figure(), layer_colours(tables.values())
    for symbol, (kind, table) in zip(_SYMBOLS, tables.items(), strict=False):
        sides = [_side(table, measure, raw) for measure in measures]
        for view_layer, layer in enumerate(table.layers):
            places = [place for place, (own, _) in enumerate(table.heads) if own == layer]
            x, y = ({name: values[places] for name, values in side.items()} for side in sides)
            links = [f"{kind}.{view_layer}.{table.heads[place][1]}" for place in places]
            names = [head_place(layer + 1, table.heads[place][1] + 1) for place in places]
            several = f" · {kinds[kind]}" if len(tables) > 1 else ""
            colour = colours[layer]
            traces.dots(
                figure,
                x["mean"],
                y["mean"],
                colour,
                f"{layer_place(layer + 1)}{several}",
                hover=f"%{{customdata[1]}}{several}<br>{titles[0]}: %{{x:.3f}}<br>{titles[1]}: %{{y:.3f}}",
                size=[18 if link == chosen else 11 for link in links],
                symbol=symbol,
                marker={"line": {"color": ACCENT, "width": [4 if link == chosen else 0 for link in links]}},
                error_x={"array": x["up"], "arrayminus": x["down"], "width": 0, "thickness": 1, "color": colour},
                error_y={"array": y["up"], "arrayminus": y["down"], "width": 0, "thickness": 1, "color": colour},
                customdata=[[link, name] for link, name in zip(links, names, strict=True)],
            )
    return lay_out(figure, titles[0], titles[1], 420)


def layer_colours(tables: Iterable[HeadTable]) -> list[str]:
    """Return a colour for each layer: categories, or a scale where there are too many layers."""
    count = 1 + max(layer for table in tables for layer, _ in table.heads)
    if count <= len(CATEGORIES):
        return list(CATEGORIES[:count])
    return sample_colorscale("viridis", [layer / (count - 1) for layer in range(count)])  # type: ignore[no-any-return]


def _side(table: HeadTable, measure: str, raw: bool) -> dict[str, np.ndarray]:
    """Means and the lengths of their intervals in both directions."""
    mean, low, high = (table.plotted(measure, part, raw).astype(np.float32) for part in ("mean", "low", "high"))
    return {"mean": mean, "up": high - mean, "down": mean - low}


def sets_figure(
    narrow: Mapping[str, HeadTable], broad: Mapping[str, HeadTable], measure: str, labels: Labels
) -> go.Figure:
    """Each head's mean on narrow data (across) and on broad data (up); on the diagonal both are equal."""
    figure, colours = go.Figure(), layer_colours(narrow.values())
    ends: list[float] = []
    for symbol, (kind, table) in zip(_SYMBOLS, narrow.items(), strict=False):
        x, y = (_side(each, measure, raw=False) for each in (table, broad[kind]))
        ends += [float(value) for side in (x, y) for value in side["mean"] if np.isfinite(value)]
        line = {"width": 0, "thickness": 1}
        traces.dots(
            figure,
            x["mean"],
            y["mean"],
            [colours[layer] for layer, _ in table.heads],
            labels[kind],
            hover="%{customdata[0]}: %{x:.3f}, %{y:.3f}",
            size=10,
            symbol=symbol,
            error_x={"array": x["up"], "arrayminus": x["down"], **line},
            error_y={"array": y["up"], "arrayminus": y["down"], **line},
            customdata=[[head_place(layer + 1, head + 1)] for layer, head in table.heads],
            showlegend=len(narrow) > 1,
        )
    if ends:
        traces.line(figure, [min(ends), max(ends)], [min(ends), max(ends)], "rgba(128,128,128,0.6)", dash="dot")
    return lay_out(figure, labels["on-narrow"], labels["on-broad"], 360)
