"""Why 1/sqrt(d): the spread of q . k by width d, and the softmax of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.scoring_functions.scaling_figures import histogram_figure, sharpness_figure, spread_figure
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.lessons.scoring_functions.scaling import Width, dot_products, measure_width, variance_error_allowed

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
