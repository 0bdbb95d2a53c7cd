"""Why 1/sqrt(d): the spread of q . k over d, and what softmax makes of it."""

from __future__ import annotations

import math
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
        chapter.figure("spread", figure, d=d, low=signed(width.quantiles[0]), high=signed(width.quantiles[-1]))
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
    first = products[:num_keys]
    plain, scaled = torch.softmax(first, dim=0), torch.softmax(first / math.sqrt(d), dim=0)
    figure = weights_figure(plain.numpy(), scaled.numpy(), names)
    chapter.figure("one-query", figure, d=d, plain=f"{plain.max():.3f}", scaled=f"{scaled.max():.3f}")
    with st.container(horizontal=True, key="claims-scaling"):
        chapter.claim(
            "variance", abs(width.variance / d - 1), variance_error_allowed(d, PAIRS), d=d, pairs=f"{PAIRS:,}"
        )
        entropies = [width.scaled.entropy for width in widths]
        chapter.claim("flat", max(entropies) - min(entropies), 0.1 * max(math.log2(num_keys), 1))


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
