"""Figures of learning: curves, heads over time, accuracy by length, and the numbers that they mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.colors import hex_to_rgb
from plotly.subplots import make_subplots
from torch import Tensor

from ui.blocks.figures import token_heatmap
from ui.text.head_names import head_number, head_place, layer_place
from ui.text.words import load_words
from ui.widgets import traces
from ui.widgets.chart import named_parts
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out, ordered_colours, token_ticks
from viz_core.tasks.film import Film


@dataclass(frozen=True)
class Jump:
    """Where a number changes most from one shot to the next: after update `before`, until `after`, by `change`."""

    before: int
    after: int
    change: float


def largest_jump(shots: Sequence[int], values: Float[np.ndarray, " shots"]) -> Jump | None:
    """The largest change of a number between two shots; the earlier of two as large; None with fewer than two."""
    if len(shots) < 2:
        return None
    changes = np.diff(values.astype(np.float64))
    place = int(np.abs(changes).argmax())
    return Jump(shots[place], shots[place + 1], float(changes[place]))


def strongest_head(measured: Float[np.ndarray, "shots layers heads"]) -> tuple[int, int]:
    """Layer and head with the most of a measure at the last shot."""
    layer, head = np.unravel_index(int(measured[-1].argmax()), measured.shape[1:])
    return int(layer), int(head)


PUBLISHED: Mapping[str, Mapping[str, float]] = {
    # Mean reciprocal rank past length 20 on small tasks, the higher the better (Kazemnejad 2023).
    "kazemnejad": {"none": 0.69, "t5": 0.55, "alibi": 0.50, "rotary": 0.33, "sinusoidal": 0.22},
    # Perplexity of English at 3,512 tokens, trained at 512: the lower the better, so its negative (Press 2022).
    "press": {"sinusoidal": -178.97, "rotary": -35.54, "t5": -22.91, "alibi": -18.40},
}
"""What others measured, by scheme; the larger the better."""

PAPERS = {"kazemnejad": "Kazemnejad 2023", "press": "Press 2022"}


@dataclass(frozen=True, eq=False)
class Reach:
    """One scheme's accuracy by length: mean of its seeds, and the lowest and highest of them.

    Attributes:
        past: mean accuracy of each seed over all lengths that are longer than any trained on.
    """

    scheme: str
    lengths: tuple[int, ...]
    seeds: Float[np.ndarray, "seeds lengths"]
    longest: int

    @property
    def mean(self) -> Float[np.ndarray, " lengths"]:
        """Of all seeds."""
        return self.seeds.mean(axis=0)

    @property
    def low(self) -> Float[np.ndarray, " lengths"]:
        """The lowest seed at each length."""
        return self.seeds.min(axis=0)

    @property
    def high(self) -> Float[np.ndarray, " lengths"]:
        """The highest seed at each length."""
        return self.seeds.max(axis=0)

    def _of(self, chosen: Sequence[bool]) -> Float[np.ndarray, " seeds"]:
        return self.seeds[:, np.array(chosen)].mean(axis=1)

    @property
    def past(self) -> Float[np.ndarray, " seeds"]:
        """Each seed's mean over lengths that are longer than any trained on."""
        return self._of([length > self.longest for length in self.lengths])

    @property
    def within(self) -> Float[np.ndarray, " seeds"]:
        """Each seed's mean over lengths that were trained on."""
        return self._of([length <= self.longest for length in self.lengths])


def read_reaches(recorded: Mapping[str, Any]) -> dict[str, Reach]:
    """Every scheme's reach, the best past its length first, of what the recording command wrote."""
    lengths, longest = tuple(recorded["lengths"]), recorded["plan"]["longest"]
    found = [
        Reach(scheme, lengths, np.array(list(seeds.values()), np.float64), longest)
        for scheme, seeds in recorded["accuracy"].items()
        if seeds
    ]
    return {each.scheme: each for each in sorted(found, key=lambda each: -float(each.past.mean()))}


def published_order(paper: str) -> list[str]:
    """Schemes as a paper orders them, the best first."""
    return sorted(PUBLISHED[paper], key=lambda scheme: -PUBLISHED[paper][scheme])


def reversed_pairs(reaches: Mapping[str, Reach], paper: str) -> list[tuple[str, str]]:
    """Pairs of schemes that every seed of ours orders otherwise than a paper does: first the one that is ahead here.

    A pair counts where the lowest seed of the one is above the highest of the other.
    """
    order = [scheme for scheme in published_order(paper) if scheme in reaches]
    return [
        (behind, ahead)
        for ahead, behind in combinations(order, 2)
        if reaches[behind].past.min() > reaches[ahead].past.max()
    ]


_GREY = "rgba(128,128,128,0.8)"
_CURVES = (CATEGORIES[6], CATEGORIES[4], CATEGORIES[5])  # none of queries, keys, values or weights
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star")
_LEGEND_BELOW = {"y": -0.2, "yanchor": "top"}  # above, the buttons of the chart would cover it
_MAX_POINTS = 400  # of a curve: more are too close to be told apart


def curve_figure(films: Mapping[str, Film], step: int, jump: Jump | None, labels: Labels) -> go.Figure:
    """Loss of each batch above; below, accuracy on the batch in grey and on held-out examples in colour.

    Args:
        films: one or two, by their names, which stand in the legend where there are two.
        step: of the current snapshot, marked by a line.
        jump: of the first film, a band.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    several, words = len(films) > 1, load_words("common")
    for place, (name, film) in enumerate(films.items()):
        colour = _CURVES[place]
        shown = _thinned(len(film.loss))
        own: dict[str, Any] = {"legendgroup": name, "hover": None, "col": 1}
        parts = {part: words("named-part", name=name, part=labels[part]) for part in ("on-batch", "held-out")}
        parts = parts if several else {part: labels[part] for part in parts}
        traces.line(figure, shown + 1, film.loss[shown], colour, name, width=1.5, showlegend=several, row=1, **own)
        own |= {"showlegend": not several, "row": 2}
        dotted: dict[str, Any] = {"width": 1, "dash": "dot", "opacity": 0.5}
        traces.line(figure, shown + 1, film.accuracy[shown], colour, parts["on-batch"], **dotted, **own)
        own |= {"size": 5, "symbol": _SYMBOLS[place]}
        traces.line(figure, np.array(film.shots), film.held_out, colour, parts["held-out"], **own)
    _mark(figure, step, jump)
    last = max(film.shots[-1] for film in films.values())
    axes: dict[str, Any] = {"xaxis": {"range": [0, max(1, last)]}, "yaxis": {"rangemode": "tozero"}}
    lay_out(figure, "", "", 400, **axes, legend=_LEGEND_BELOW)
    figure.update_xaxes(title=labels["updates"], row=2, col=1)
    figure.update_yaxes(title=labels["loss"], row=1, col=1)
    return figure.update_yaxes(title=labels["accuracy"], range=[0, 1.03], row=2, col=1)


def heads_figure(
    shots: Sequence[int],
    measured: Float[np.ndarray, "shots layers heads"],
    step: int,
    jump: Jump | None,
    y: str,
    labels: Labels,
) -> go.Figure:
    """One measure of every head at every shot: a colour a layer, a dash a head."""
    figure = go.Figure()
    for layer, colour in enumerate(ordered_colours(measured.shape[1])):
        for head in range(measured.shape[2]):
            name, y_of_head = head_place(layer + 1, head + 1), measured[:, layer, head]
            dash = _DASHES[head % len(_DASHES)]
            traces.line(figure, np.array(shots), y_of_head, colour, name, dash=dash, width=1.8, hover=None)
    _mark(figure, step, jump)
    axes: dict[str, Any] = {"xaxis": {"range": [0, max(1, shots[-1])]}, "yaxis": {"rangemode": "tozero"}}
    return lay_out(figure, labels["updates"], y, 400, **axes, legend=_LEGEND_BELOW)


def every_head_figure(weights: Float[Tensor, "layers heads n n"], tokens: Sequence[str]) -> go.Figure:
    """Draw the map of every head, a row a layer: as one map with gaps, which plotly draws faster than eight."""
    layers, heads, n = weights.shape[:3]
    apart = np.pad(weights.numpy(), ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)  # a blank row and column
    pairs = np.pad([[f"{query} → {key}" for key in tokens] for query in tokens], (0, 1), constant_values="")
    figure = traces.cells(
        go.Figure(),
        apart.swapaxes(1, 2).reshape(layers * (n + 1), -1)[:-1, :-1],
        hover="%{text}: %{z:.2f}",
        text=np.tile(pairs, (layers, heads))[:-1, :-1],
    )

    def named(names: Sequence[str]) -> dict[str, Any]:
        middles = [(n + 1) * place + (n - 1) / 2 for place in range(len(names))]
        return {"tickvals": middles, "ticktext": names, "showgrid": False, "zeroline": False}

    return lay_out(
        figure,
        "",
        "",
        50 + 145 * layers,
        xaxis={**named([head_number(head + 1) for head in range(heads)]), "side": "top", "automargin": False},
        yaxis={**named([layer_place(layer + 1) for layer in range(layers)]), "autorange": "reversed"},
        meta=named_parts(whole="head"),
    )


def pattern_figure(
    weights: Float[Tensor, "n n"], letters: Sequence[str], predicted: Sequence[str], labels: Labels
) -> go.Figure:
    """Draw the map of a head; beside its last rows the letter predicted next, and whether it is right."""
    n, begin = len(weights), len(weights) - len(predicted)
    later = np.triu(np.ones((n, n), bool), 1)  # keys that the causal mask hides are left blank
    figure = go.Figure(token_heatmap(np.where(later, np.nan, weights.numpy()), "weights", showscale=False))
    figure.update_traces(xgap=1, ygap=1, hoverongaps=False)
    right = [f"{letter} {'✓' if letter == letters[begin + i + 1] else '✗'}" for i, letter in enumerate(predicted)]
    place = {"x": [n] * len(right), "y": list(range(begin, n)), "textposition": "middle right"}
    figure.add_scatter(**place, text=right, mode="text", hoverinfo="skip", showlegend=False, cliponaxis=False)
    ticks = token_ticks(letters[:n])
    figure.add_annotation(x=n + 1.5, y=begin - 1, text=labels["predicted"], showarrow=False, xanchor="right")
    lines = {"showgrid": False, "zeroline": False}
    xaxis = {**ticks, **lines, "side": "top", "range": [-0.5, n + 1.5]}
    yaxis = {**ticks, **lines, "range": [n - 0.5, -0.5]}
    return lay_out(figure, labels["keys"], labels["queries"], 400, xaxis=xaxis, yaxis=yaxis)


def together_figure(
    film: Film,
    measures: Mapping[str, Float[np.ndarray, "shots layers heads"]],
    heads: Mapping[str, tuple[int, int]],
    step: int,
    labels: Labels,
) -> go.Figure:
    """Draw held-out accuracy and, for each measure, its strongest head, over the updates."""
    figure = go.Figure()
    x = np.array(film.shots)
    line = {"color": _CURVES[0], "width": 3}
    figure.add_scatter(x=x, y=film.held_out, name=labels["accuracy"], line=line, meta="accuracy")
    for place, (name, (layer, head)) in enumerate(heads.items(), start=1):
        y = measures[name][:, layer, head].astype(np.float32)
        hover = f"%{{y:.2f}}<extra>{head_place(layer + 1, head + 1)}</extra>"  # a prediction asks for the layer
        style = {"color": _CURVES[place], "dash": _DASHES[place]}
        figure.add_scatter(x=x, y=y, name=labels[name], hovertemplate=hover, line=style, meta=name)
    figure.update_traces(mode="lines+markers", marker={"size": 4})
    _mark(figure, step, None)
    legend = {"orientation": "v", "y": -0.25, "yanchor": "top"}
    return lay_out(figure, labels["updates"], "", 340, yaxis={"range": [0, 1.03]}, legend=legend)


def reach_figure(reaches: Mapping[str, Reach], yours: Sequence[tuple[int, float]], labels: Labels) -> go.Figure:
    """Accuracy by length, a line and a band from the lowest to the highest seed for each scheme.

    Args:
        yours: length and accuracy of the reader's own run; or none.
    """
    figure = go.Figure()
    for place, (scheme, reach) in enumerate(reaches.items()):
        colour, x = CATEGORIES[place], np.array(reach.lengths)
        red, green, blue = hex_to_rgb(colour)
        figure.add_scatter(
            x=np.concatenate([x, x[::-1]]),
            y=np.concatenate([reach.high, reach.low[::-1]]).astype(np.float32),
            fill="toself",
            fillcolor=f"rgba({red},{green},{blue},0.13)",
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            legendgroup=scheme,
        )
        own: dict[str, Any] = {"legendgroup": scheme, "hover": None, "size": 5, "symbol": _SYMBOLS[place]}
        traces.line(figure, x, reach.mean, colour, labels[scheme], **own)
    if yours:
        lengths, accuracies = zip(*yours, strict=True)
        traces.line(figure, lengths, accuracies, ACCENT, labels["yours"], width=4, mode="lines+markers", hover=None)
    longest = max((reach.longest for reach in reaches.values()), default=0)
    figure.add_vline(x=longest, line={"color": _GREY, "dash": "dot"})
    figure.add_annotation(
        x=longest, y=1.02, yref="paper", text=labels["trained-to"], showarrow=False, xanchor="left", xshift=4
    )
    return lay_out(figure, labels["length"], labels["accuracy"], 440, yaxis={"range": [0, 1.03]}, legend=_LEGEND_BELOW)


def _thinned(count: int) -> np.ndarray:
    """Places of at most so many points, the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, _MAX_POINTS)).round().astype(int)) if count else np.arange(0)


def _mark(figure: go.Figure, step: int, jump: Jump | None) -> None:
    """Mark the current step and the largest change."""
    figure.add_vline(x=step, line={"color": ACCENT, "width": 2})
    if jump is not None:
        figure.add_vrect(x0=jump.before, x1=jump.after, fillcolor="#e69f00", opacity=0.3, line_width=0)
