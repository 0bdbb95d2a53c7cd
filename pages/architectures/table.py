"""Table 1 with the reader's numbers: in figures, as curves over n, and the path of every pair."""

from __future__ import annotations

from functools import partial

import plotly.graph_objects as go

from pages.architectures.cost_figures import curves_figure, pairs_figure
from pages.architectures.sizes import SizeInputs, number
from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures.costs import (
    ARCHITECTURES,
    LayerSizes,
    crossover,
    layer_cost,
    longest_path,
    path_matrix,
)

MOST_PAIRED = 48
_CURVE = tuple(2**power for power in range(1, 17))


def table(chapter: Chapter, inputs: SizeInputs) -> None:
    """Draw Table 1 with the reader's sizes, and with exact counts."""
    values: dict[str, object] = {}
    for name in ARCHITECTURES:
        cost = layer_cost(name, inputs.sizes)
        values |= {
            f"{name}_order": f"{cost.order:,}",
            f"{name}_counted": f"{cost.counted:,}",
            f"{name}_sequential": f"{cost.sequential:,}",
            f"{name}_path": number(cost.path),
            f"{name}_exact": number(longest_path(name, inputs.sizes)),
        }
    s = inputs.sizes
    chapter.text("table", n=f"{s.n:,}", d=f"{s.d:,}", k=s.k, r=f"{s.r:,}", **values)


def curves(chapter: Chapter, inputs: SizeInputs) -> None:
    """Draw one column of the table over n, with the length at which self-attention stops being cheaper."""
    names, s = chapter.words.group("figure"), inputs.sizes
    shown = chapter.controls.choice("show", ("order", "counted", "sequential", "path"), "order")
    meets = {name: crossover(name, s) for name in ("recurrent", "convolution", "restricted")}
    inside = {name: n for name, n in meets.items() if _CURVE[0] <= n <= _CURVE[-1]} if shown == "order" else {}
    figure = partial(curves_figure, shown, _CURVE, s, inside, names)
    summary = [f"{names[name]} {number(getattr(layer_cost(name, s), shown))}" for name in ARCHITECTURES]
    chapter.figure("curves", figure, shown=names[shown], n=f"{s.n:,}", summary=summary)
    crossings = {name: f"{n:,}" for name, n in meets.items()}
    chapter.text(f"curves-{shown}", d=f"{s.d:,}", k=s.k, r=f"{s.r:,}", n=f"{s.n:,}", **crossings)


def pairs(chapter: Chapter, inputs: SizeInputs) -> None:
    """The path between every pair of tokens."""
    n = min(inputs.sizes.n, MOST_PAIRED)
    sizes = LayerSizes(n, inputs.sizes.d, inputs.sizes.k, inputs.sizes.r)
    names = chapter.words.group("figure")
    chapter.text("pairs", n=n)
    summary = [f"{names[name]} {number(longest_path(name, sizes))}" for name in ARCHITECTURES]

    def draw() -> go.Figure:
        return pairs_figure({name: path_matrix(name, sizes).numpy() for name in ARCHITECTURES}, names)

    chapter.figure("pairs", draw, height=870, n=n, summary=summary)
