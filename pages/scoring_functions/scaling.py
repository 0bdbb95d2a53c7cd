"""Why 1/sqrt(d): the spread of q . k by width d, and the softmax of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out
from viz_core.lessons.scoring_functions.scaling import Width, dot_products, measure_width, variance_error_allowed

PLAIN = CATEGORIES[4]
SCALED = ACCENT
_LIMITS = {"entropy": None, "largest": (0, 1.05), "reaching": None}


def spread_figure(widths: Sequence[Width], chosen: int, labels: Labels) -> go.Figure:
    """Bands of q . k over the width, 50% and 90% of all pairs, with and without the division."""
    figure = go.Figure()
    d = np.array([width.d for width in widths], dtype=np.float32)
    quantiles = np.array([width.quantiles for width in widths], dtype=np.float32)
    for name, colour, values in (("plain", PLAIN, quantiles), ("scaled", SCALED, quantiles / np.sqrt(d)[:, None])):
        for low, high, opacity in ((0, 4, 0.18), (1, 3, 0.38)):
            traces.line(
                figure,
                np.concatenate([d, d[::-1]]),
                np.concatenate([values[:, high], values[::-1, low]]),
                name=labels[name],
                width=0,
                fill="toself",
                fillcolor=_faint(colour, opacity),
                legendgroup=name,
                showlegend=low == 1,
            )
        for edge in (0, 4):
            traces.line(
                figure,
                d,
                values[:, edge],
                colour,
                labels[name],
                hover="d = %{x}: %{y:.3g}",
                width=1.5,
                legendgroup=name,
                showlegend=False,
            )
    figure.add_vline(x=chosen, line={"color": CATEGORIES[7], "dash": "dot"})
    lay_out(figure, labels["width"], labels["score"], 380)
    return _width_axis(figure, d, every=2)


def histogram_figure(products: Float[np.ndarray, " count"], d: int, labels: Labels) -> go.Figure:
    """q . k and q . k / sqrt(d) of the same pairs, each over the normal density that theory gives."""
    figure = go.Figure()
    reach = 4 * max(math.sqrt(d), 1.0)
    for name, colour, spread in (("plain", PLAIN, math.sqrt(d)), ("scaled", SCALED, 1.0)):
        values = products * (spread / math.sqrt(d))
        height, edges = np.histogram(values, bins=60, range=(-5 * spread, 5 * spread), density=True)
        traces.bars(
            figure,
            (edges[1:] + edges[:-1]) / 2,
            height,
            colour,
            labels[name],
            hover="%{x:.3g}: %{y:.4f}",
            marker={"opacity": 0.45, "line": {"width": 0}},
            width=np.diff(edges).astype(np.float32),
            legendgroup=name,
        )
        x = np.linspace(-5 * spread, 5 * spread, 161, dtype=np.float32)
        density = np.exp(-0.5 * (x / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
        traces.line(figure, x, density, colour, width=2, dash="dash", legendgroup=name)
    lay_out(figure, labels["score"], labels["density"], 380, xaxis={"range": [-reach, reach]}, barmode="overlay")
    return figure


def sharpness_figure(widths: Sequence[Width], num_keys: int, chosen: int, labels: Labels) -> go.Figure:
    """Entropy, largest weight and the gradient that reaches a query, over the width, with and without the division.

    The first two are means over the queries; of the gradient, the median and a band with half of all queries.
    """
    names = tuple(_LIMITS)
    figure = make_subplots(rows=1, cols=3, subplot_titles=[labels[name] for name in names], horizontal_spacing=0.07)
    d = np.array([width.d for width in widths], dtype=np.float32)
    for column, name in enumerate(names, start=1):
        for kind, colour in (("plain", PLAIN), ("scaled", SCALED)):
            values = np.array([getattr(getattr(width, kind), name) for width in widths], dtype=np.float32)
            if values.ndim == 2:
                low, values, high = values.T
                traces.line(
                    figure,
                    np.concatenate([d, d[::-1]]),
                    np.concatenate([high, low[::-1]]),
                    width=0,
                    fill="toself",
                    fillcolor=_faint(colour, 0.25),
                    legendgroup=kind,
                    row=1,
                    col=column,
                )
            traces.line(
                figure,
                d,
                values,
                colour,
                labels[kind],
                hover="d = %{x}: %{y:.3f}",
                width=2,
                size=6,
                symbol="circle" if kind == "plain" else "square",
                legendgroup=kind,
                showlegend=column == 1,
                row=1,
                col=column,
            )
    figure.add_vline(x=chosen, line={"color": CATEGORIES[7], "dash": "dot"})
    lay_out(figure, labels["width"], "", 340)
    figure.update_layout(legend={"y": 1.12}, margin={"t": 70})
    figure.update_yaxes(range=[0, 1.05 * max(math.log2(num_keys), 0.1)], col=1)
    figure.update_yaxes(range=_LIMITS["largest"], col=2)
    figure.update_yaxes(rangemode="tozero", col=3)
    return _width_axis(figure, d, every=3)


def _width_axis(figure: go.Figure, d: Float[np.ndarray, " widths"], every: int = 1) -> go.Figure:
    ticks = d[::every]
    return figure.update_xaxes(
        type="log",
        range=[math.log10(d[0]) - 0.08, math.log10(d[-1]) + 0.12],
        tickvals=ticks,
        ticktext=[f"{int(tick):,}" for tick in ticks],
    )


def _faint(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


WIDTHS = tuple(2**k for k in range(11))
PAIRS = 4096


def scaling(chapter: Chapter) -> None:
    """The spread of q . k by width d, and its softmax with and without the division."""
    controls = chapter.controls
    chapter.text("scaling")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        d = controls.select_slider("d", WIDTHS, 512)
        num_keys = int(controls.slider("keys", 1, 64, 16))
        with controls.more():
            seed = int(controls.number("seed", 0, 999, 0))
    chapter.lazy("scaling", lambda: _pictures(chapter, d, num_keys, seed), 920)
    bits = max(math.log2(num_keys), 1)
    with chapter.claim_row("claims-scaling"):
        chapter.claim(
            "variance",
            lambda: abs(_width(d, num_keys, seed).variance / d - 1),
            variance_error_allowed(d, PAIRS),
            d=d,
            pairs=f"{PAIRS:,}",
        )
        chapter.claim_at_most("flat", lambda: _entropy_span(num_keys, seed), 0.1 * bits, bits=f"{bits:.3g}")


def _pictures(chapter: Chapter, d: int, num_keys: int, seed: int) -> None:
    names = chapter.words.group("figure")
    widths = _widths(num_keys, seed)
    width = _width(d, num_keys, seed)
    products = dot_products(d, PAIRS, seed)
    spread, one = st.columns(2)
    with spread:
        figure = spread_figure(widths, d, names)
        chapter.figure("spread", figure, **_spread_words(widths))
    with one:
        figure = histogram_figure(products.numpy(), d, names)
        values: dict[str, Any] = {"d": d, "variance": f"{width.variance:.2f}", "scaled": f"{width.variance / d:.3f}"}
        chapter.figure("histogram", figure, pairs=f"{PAIRS:,}", root=f"{math.sqrt(d):.3g}", **values)
    chapter.figure(
        "sharpness",
        sharpness_figure(widths, num_keys, d, names),
        d=d,
        most=f"{math.log2(num_keys):.2f}",
        **_sharpness_words(width),
    )
    chapter.finding("gradient", width.scaled.median_gradient > width.plain.median_gradient, d=d)


def _spread_words(widths: Sequence[Width]) -> dict[str, Any]:
    divided = [each.band / math.sqrt(each.d) for each in widths]
    return {
        "first": f"{widths[0].band:.3g}",
        "last": f"{widths[-1].band:.3g}",
        "narrowest": f"{min(divided):.2f}",
        "widest": f"{max(divided):.2f}",
    }


def _sharpness_words(width: Width) -> dict[str, Any]:
    names = {"entropy": "entropy", "largest": "largest", "reaching": "median_gradient"}
    return {
        f"{kind}_{name}": f"{getattr(getattr(width, kind), attribute):.3f}"
        for kind in ("plain", "scaled")
        for name, attribute in names.items()
    }


@cached(message="measuring")
def _widths(num_keys: int, seed: int) -> tuple[Width, ...]:
    return tuple(measure_width(d, num_keys, PAIRS, seed) for d in WIDTHS)


def _width(d: int, num_keys: int, seed: int) -> Width:
    return _widths(num_keys, seed)[WIDTHS.index(d)]


def measured_width(d: int) -> Width:
    """Return what is measured at width d, with the first seed."""
    return _width(d, 16, 0)


def _entropy_span(num_keys: int, seed: int) -> float:
    """Largest minus smallest entropy over all widths, in bits, of scores divided by the root."""
    entropies = [width.scaled.entropy for width in _widths(num_keys, seed)]
    return max(entropies) - min(entropies)
