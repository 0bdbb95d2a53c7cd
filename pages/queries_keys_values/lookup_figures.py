"""Pictures of a lookup: weights over the keys, the table of edits, every key looked up among all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets.chart_payload import named_parts
from ui.widgets.figure_style import KEYS, QUERIES, WEIGHTS_SCALE, Labels, escape_labels, lay_out
from viz_core.lessons.queries_keys_values.lookup import edit_table

MOST_LETTERS = 16  # of a word beside a picture
_LARGEST = 1e37  # that float32 holds with room to spare


def weights_figure(
    weights: Float[np.ndarray, " keys"] | None, names: Sequence[tuple[str, str]], labels: Labels
) -> go.Figure:
    """A bar for each key, the first on top, with its value and weight; empty places without weights."""
    places = np.arange(len(names), dtype=np.float32)
    given = np.zeros(len(names)) if weights is None else np.minimum(weights, _LARGEST)
    largest = max(1.0, float(np.nan_to_num(given).max()))  # more than 1 where the formula is broken
    hover = [labels["pair"].format(key=key, value=value) for key, value in _escaped(names)]
    figure = go.Figure(
        go.Bar(
            x=given.astype(np.float32),
            y=places,
            orientation="h",
            marker={"color": KEYS},
            meta="weight",
            text=None if weights is None else [_number(weight) for weight in weights],
            textposition="outside",
            cliponaxis=False,
            customdata=hover,
            hovertemplate="%{customdata}: %{x:.6f}<extra></extra>",
        )
    )
    shown = [labels["pair"].format(key=_short(key), value=_short(value)) for key, value in _escaped(names)]
    return lay_out(
        figure,
        labels["weight"],
        "",
        90 + 30 * max(4, len(names)),
        xaxis={
            "range": [0, 1.14 * largest],
            "tickvals": [0, 0.25, 0.5, 0.75, 1] if largest == 1 else None,
            "zeroline": False,
        },
        yaxis={"tickvals": places, "ticktext": shown, "autorange": "reversed", "showgrid": False, "ticks": ""},
        bargap=0.35,
        meta=named_parts(y="key value"),
    )


def edits_figure(query: str, key: str, end: int, labels: Labels) -> go.Figure:
    """The table of Wagner and Fischer, with one cheapest path from its start to column `end` of its last row."""
    table = np.array(edit_table(query, key), dtype=np.float32)
    path = cheapest_path(edit_table(query, key), end)
    rows, columns = table.shape
    figure = go.Figure(
        go.Heatmap(
            z=table,
            colorscale=WEIGHTS_SCALE,
            reversescale=True,
            showscale=False,
            xgap=2,
            ygap=2,
            texttemplate="%{z:.0f}" if columns <= 24 else None,
            hovertemplate=labels["edits"].format(i="%{y}", j="%{x}", edits="%{z}") + "<extra></extra>",
        )
    )
    figure.add_scatter(
        x=np.array([j for _, j in path], dtype=np.float32),
        y=np.array([i for i, _ in path], dtype=np.float32),
        mode="markers",
        marker={"color": QUERIES, "size": 26, "symbol": "square-open", "line": {"width": 3}},
        hoverinfo="skip",
        showlegend=False,
    )
    style = {"showgrid": False, "zeroline": False, "ticks": "", "tickmode": "array"}
    return lay_out(
        figure,
        labels["key-letters"],
        labels["query-letters"],
        110 + 34 * max(3, rows),
        xaxis={"tickvals": np.arange(columns), "ticktext": ["∅", *escape_labels(tuple(key))], "side": "top", **style},
        yaxis={
            "tickvals": np.arange(rows),
            "ticktext": ["∅", *escape_labels(tuple(query))],
            **style,
            "autorange": "reversed",
        },
    )


def all_keys_figure(weights: Float[np.ndarray, "keys keys"], keys: Sequence[str], labels: Labels) -> go.Figure:
    """Every key as a query (rows) and as a key (columns)."""
    places = np.arange(len(keys), dtype=np.float32)
    names = [_short(key) for key in escape_labels(tuple(keys))]
    figure = go.Figure(
        go.Heatmap(
            z=weights.astype(np.float32),
            zmin=0,
            zmax=1,
            colorscale=WEIGHTS_SCALE,
            xgap=1,
            ygap=1,
            texttemplate="%{z:.2f}" if len(keys) <= 12 else None,
            customdata=np.array([[labels["looks-at"].format(query=q, key=k) for k in names] for q in names]),
            hovertemplate="%{customdata}: %{z:.6f}<extra></extra>",
            colorbar={"thickness": 10, "title": {"text": labels["weight"]}},
        )
    )
    style = {"showgrid": False, "zeroline": False, "ticks": "", "tickvals": places, "ticktext": names}
    return lay_out(
        figure,
        labels["as-key"],
        labels["as-query"],
        150 + 38 * max(4, min(len(keys), 16)),
        xaxis=style,
        yaxis={"autorange": "reversed", **style},
    )


def _number(weight: float) -> str:
    if np.isnan(weight):
        return "0/0"
    return f"{weight:.3f}" if weight < 1000 else f"{weight:.2g}"


def _escaped(names: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [escape_labels(pair) for pair in names]


def _short(label: str) -> str:
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"


def cheapest_path(table: list[list[int]], end: int) -> list[tuple[int, int]]:
    """The cells (i, j) of one cheapest way through the table, from (0, 0) to column `end` of the last row."""
    i, j = len(table) - 1, end
    path = [(i, j)]
    while (i, j) != (0, 0):
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]  # a letter kept or replaced first
        i, j = min((cell for cell in before if min(cell) >= 0), key=lambda cell: table[cell[0]][cell[1]])
        path.append((i, j))
    return path[::-1]
