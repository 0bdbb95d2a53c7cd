"""Rotary positions: pairs that turn, and their product by distance."""

from __future__ import annotations

import streamlit as st
import torch

from pages.position_embeddings.rotary_figures import decay_figure, pairs_figure
from pages.position_embeddings.tokens import Asked
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.broken import added_residuals
from viz_core.lessons.position_embeddings.rotary_decay import (
    mean_size,
    rotary_bound,
    rotary_bound_ratio,
    rotary_products,
    rotary_shift_residual,
    su_bound,
)
from viz_core.positional import (
    apply_rotary,
)

EXACT = 1e-9  # float64
NEAR, FAR = (1, 50), (151, 200)  # distances, to tell whether products fade


def rotary(chapter: Chapter, _asked: Asked) -> None:
    names, controls = chapter.words.group("figure"), chapter.controls
    columns = st.columns(4, gap="medium")
    with columns[0]:
        m = int(controls.slider("m", 0, 100, 8))
    with columns[1]:
        n = int(controls.slider("key-position", 0, 100, 3))
    with columns[2]:
        d = controls.select_slider("d", (4, 8, 16, 32, 64, 128), 64)
    with columns[3]:
        base = controls.number("base", 2, 1_000_000, 10_000, 1000)
    chapter.figure("pairs", pairs_figure(m, n, d, base, names), m=m, n=n, pairs=min(d, 16) // 2)
    ones = torch.ones(d, dtype=torch.float64) * d**-0.5
    offsets = torch.arange(-200, 201)
    products, bound = (of(ones, ones, offsets, base) for of in (rotary_products, rotary_bound))
    chosen = torch.tensor([n - m])
    here, above, su = (float(of(ones, ones, chosen, base)) for of in (rotary_products, rotary_bound, su_bound))
    chapter.text("product", m=m, n=n, offset=f"{n - m:+d}", product=f"{here:.6f}")
    chapter.figure(
        "decay",
        lambda: decay_figure(offsets.numpy(), products.numpy(), bound.numpy(), n - m, names),
        here=f"{here:.3f}",
        bound=f"{above:.3f}",
        su=f"{su:.3g}",
    )
    near, far = (mean_size(products, offsets, *distances) for distances in (NEAR, FAR))
    chapter.finding("fades", far < 0.8 * near, near=f"{near:.3f}", far=f"{far:.3f}")
    generator = torch.Generator().manual_seed(d)
    q, k = torch.randn(2, d, dtype=torch.float64, generator=generator)
    turned = apply_rotary(q.expand(1, 1, len(offsets), -1), offsets, base)
    moved, longer = rotary_shift_residual(q, k, offsets, base), float((turned.norm(dim=-1) - q.norm()).abs().max())
    with chapter.claims():
        if chapter.break_it("summed"):
            moved, longer = added_residuals(q, k, offsets, base)
        chapter.claim("offset-only", moved, EXACT)
        chapter.claim_at_most("bound", rotary_bound_ratio(q, k, offsets, base), 1.0 + EXACT)
        chapter.claim("length", longer, EXACT)
