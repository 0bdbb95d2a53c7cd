"""Rotary positions: rotated pairs, and their product by distance."""

from __future__ import annotations

import streamlit as st

from pages.position_embeddings.own_figures import own_figures
from pages.position_embeddings.rotary_figures import decay_figure, pairs_figure
from pages.position_embeddings.tokens import TokenInputs
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.rotary_decay import decay_curves, rotary_proofs

EXACT = 1e-9  # float64


@own_figures("rotary")
def rotary(chapter: Chapter, _inputs: TokenInputs) -> None:
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
    curves = decay_curves(d, base, n - m)
    chapter.text("product", m=m, n=n, offset=f"{n - m:+d}", product=f"{curves.product:.6f}")
    chapter.figure(
        "decay",
        lambda: decay_figure(curves.offsets.numpy(), curves.products.numpy(), n - m, names),
        here=f"{curves.product:.3f}",
    )
    close, far = curves.close_mean, curves.far_mean
    chapter.finding("fades", far < 0.8 * close, near=f"{close:.3f}", far=f"{far:.3f}")
    proofs = rotary_proofs(d, base)
    with chapter.claims():
        summed = bool(chapter.break_and_explain("summed"))
        chapter.claim("offset-only", proofs.added_shift if summed else proofs.shift, EXACT)
        chapter.claim("length", proofs.added_length if summed else proofs.length, EXACT)
