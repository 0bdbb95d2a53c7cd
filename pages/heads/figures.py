"""Figures of heads: any measure against any other, and narrow data against broad data."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ui.compute.heads import HeadTable
from ui.text.head_names import head_place, layer_place
from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, Labels, lay_out, ordered_colours
from viz_core.maps.register import ROLES

_SYMBOLS = ("circle", "square", "diamond")
_HIGH, _LOW = 0.5, 0.25  # of the largest value: heads that are named are above the one and below the other
_LEAST = 0.25  # largest share beyond chance, at least, for heads to be named
_TWO_TEXTS = 0.3  # share of a phone's axis that two texts of two lines take
_GREY = "rgba(128,128,128,0.6)"
_ANCHORS = (
    {"xanchor": "left", "yanchor": "top"},
    {"xanchor": "right", "yanchor": "bottom"},
)  # beside the line, above it


def heads_figure(
    tables: Mapping[str, HeadTable],
    measures: tuple[str, str],
    titles: Sequence[str],
    labels: Labels,
    chosen: str,
    raw: bool = False,
) -> go.Figure:
    """Every head as a point with the intervals of both means; a colour for each layer, a symbol for each kind.

    Args:
        labels: names the kinds of maps, chance, and groups of heads (`named_groups`).
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
            several = f" · {labels[kind]}" if len(tables) > 1 else ""
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
    marks = {} if raw else _marks(tables.values(), measures, labels)
    return lay_out(figure, titles[0], titles[1], 420, **marks)


def named_groups(tables: Iterable[HeadTable], measures: Sequence[str]) -> dict[str, np.ndarray]:
    """Return which heads are "costly" to switch off but hardly beyond chance, and which are "cheap" and far beyond.

    High is above half of the largest value of all heads, low below a quarter. A group without heads is left out; there
    is none unless one measure is a role, which some head has beyond chance, and the other is worth.
    """
    roles, tables = [measure for measure in measures if measure in ROLES], list(tables)
    if len(roles) != 1 or "worth" not in measures:
        return {}
    share, worth, least_worth = (
        np.concatenate([table.plotted(measure, part) for table in tables])
        for measure, part in ((roles[0], "mean"), ("worth", "mean"), ("worth", "low"))
    )
    most_share, most_worth = (np.nanmax(each, initial=0) for each in (share, worth))  # NaN: not measured, and not named
    if most_share < _LEAST:
        return {}
    cheap = (share > _HIGH * most_share) & (worth < _LOW * most_worth)
    costly = (worth > _HIGH * most_worth) & (least_worth > 0) & (share < _LOW * most_share)
    return {name: group for name, group in (("cheap", cheap), ("costly", costly)) if group.any()}


def _marks(tables: Iterable[HeadTable], measures: Sequence[str], labels: Labels) -> dict[str, Any]:
    """Name groups of heads beside them, and chance where some heads are below it."""
    tables, notes, lines = list(tables), list[dict[str, Any]](), list[dict[str, Any]]()
    sides = [np.concatenate([table.plotted(measure) for table in tables]) for measure in measures]
    tops = np.concatenate([table.plotted(measures[1], "high") for table in tables])
    at_right, occupied = "costly" if measures[0] == "worth" else "cheap", -np.inf
    two_texts = _TWO_TEXTS * (np.nanmax(tops) - np.nanmin(sides[1]))
    for name, group in sorted(named_groups(tables, measures).items(), key=lambda item: item[0] != at_right):
        x, y = (side[group] for side in sides)
        above = {"y": np.nanmax(tops[sides[0] >= x.min()]), "xanchor": "right", "yanchor": "bottom", "align": "right"}
        beside = {"y": y.mean(), "xanchor": "left", "xshift": 18, "align": "left"}
        is_left = measures[0] in ROLES and x.max() < 0  # of the line of chance, which the text would cross on a phone
        is_hidden = abs(y.mean() - occupied) < two_texts  # on a phone, behind the text of the group at the right
        if is_left or is_hidden:
            ax, ay = 0 if is_left else x.max(), occupied + two_texts if is_hidden else y.mean()
            at = {"axref": "x", "ax": ax, "ayref": "y", "ay": ay, "borderpad": 5, "standoff": 8}
            beside |= {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": _GREY, "xshift": 0, **at}
        if name == at_right:
            beside, occupied = above, above["y"]
        notes.append({"text": labels[name], "showarrow": False, "x": x.max(), **beside})
    for letter, other, anchors, measure, side in zip("xy", "yx", _ANCHORS, measures, sides, strict=True):
        if measure in ROLES and np.nanmin(side) < 0:
            line = {f"{letter}0": 0, f"{letter}1": 0, f"{other}0": 0, f"{other}1": 1, f"{other}ref": "paper"}
            lines.append({"type": "line", "line": {"color": _GREY, "dash": "dot"}, **line})
            end = {letter: 0, other: 1, f"{other}ref": "paper", f"{letter}shift": 4}
            notes.append({"text": labels["chance"], "showarrow": False, **end, **anchors})
    return {"annotations": notes, "shapes": lines}


def layer_colours(tables: Iterable[HeadTable]) -> list[str]:
    """Return a colour for each layer."""
    return ordered_colours(1 + max(layer for table in tables for layer, _ in table.heads))


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
        traces.line(figure, [min(ends), max(ends)], [min(ends), max(ends)], _GREY, dash="dot")
    return lay_out(figure, labels["on-narrow"], labels["on-broad"], 360)
