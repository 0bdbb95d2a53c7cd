"""Why 1/sqrt(d): the spread of q . k over d, and what softmax makes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st
import torch

from pages.scoring_functions.scaling_figures import histogram_figure, sharpness_figure, spread_figure, weights_figure
from ui.chapter import Chapter
from ui.compute import computed
from viz_core.lessons.scoring_functions.scaling import Width, dot_products, measure_width, variance_error_allowed

WIDTHS = tuple(2**k for k in range(11))
PAIRS = 4096


def scaling(chapter: Chapter) -> None:
    """The spread of q . k over d, and what softmax makes of it with and without the division."""
    controls, names = chapter.controls, chapter.words.group("figure")
    chapter.text("scaling")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        d = controls.stops("d", WIDTHS, 64)
        num_keys = int(controls.slider("keys", 1, 64, 16))
        with controls.more():
            seed = int(controls.number("seed", 0, 999, 0))
    widths = _widths(num_keys, seed)
    width = widths[WIDTHS.index(d)]
    products = dot_products(d, PAIRS, seed)
    spread, one = st.columns(2)
    with spread:
        figure = spread_figure(widths, d, names)
        chapter.figure("spread", figure, d=d, **_spread_words(widths, width))
    with one:
        figure = histogram_figure(products.numpy(), d, names)
        values = {"d": d, "variance": f"{width.variance:.2f}", "scaled": f"{width.variance / d:.3f}"}
        chapter.figure("histogram", figure, pairs=f"{PAIRS:,}", root=f"{math.sqrt(d):.3g}", **values)
    chapter.figure(
        "sharpness",
        sharpness_figure(widths, num_keys, d, names),
        d=d,
        keys=num_keys,
        most=f"{math.log2(num_keys):.2f}",
        **_sharpness_words(width),
    )
    passed = {"plain": f"{width.plain.passed:.3f}", "scaled": f"{width.scaled.passed:.3f}"}
    chapter.finding("gradient", width.scaled_passes_more, d=d, keys=num_keys, **passed)
    plain, scaled = (torch.softmax(width.one_query / scale, dim=0) for scale in (1, math.sqrt(d)))
    figure = weights_figure(plain.numpy(), scaled.numpy(), names)
    chapter.figure("one-query", figure, d=d, plain=f"{plain.max():.3f}", scaled=f"{scaled.max():.3f}")
    with st.container(horizontal=True, key="claims-scaling"):
        chapter.claim(
            "variance", abs(width.variance / d - 1), variance_error_allowed(d, PAIRS), d=d, pairs=f"{PAIRS:,}"
        )
        bits = max(math.log2(num_keys), 1)
        entropies = [width.scaled.entropy for width in widths]
        chapter.claim_at_most("flat", max(entropies) - min(entropies), 0.1 * bits, bits=f"{bits:.3g}")


def _spread_words(widths: Sequence[Width], width: Width) -> dict[str, Any]:
    divided = [each.band / math.sqrt(each.d) for each in widths]
    return {
        "low": signed(width.quantiles[0]),
        "high": signed(width.quantiles[-1]),
        "first": f"{widths[0].band:.3g}",
        "last": f"{widths[-1].band:.3g}",
        "narrowest": f"{min(divided):.2f}",
        "widest": f"{max(divided):.2f}",
    }


def _sharpness_words(width: Width) -> dict[str, Any]:
    return {
        f"{kind}_{name}": f"{getattr(getattr(width, kind), name):.3f}"
        for kind in ("plain", "scaled")
        for name in ("entropy", "largest", "passed")
    }


@computed(says="measuring")
def _widths(num_keys: int, seed: int) -> tuple[Width, ...]:
    return tuple(measure_width(d, num_keys, PAIRS, seed) for d in WIDTHS)


def signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
