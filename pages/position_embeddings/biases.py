"""Schemes that add a number by distance: ALiBi's slopes, T5's buckets."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from pages.position_embeddings.offset_figures import bucket_figure
from pages.position_embeddings.own_figures import own_figures
from pages.position_embeddings.tokens import ROUNDING, TokenInputs
from ui.blocks.figures import penalty_figure, slopes_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.broken import wrong_penalty
from viz_core.lessons.position_embeddings.scheme_parts import bucket_map
from viz_core.lessons.position_embeddings.scheme_proofs import (
    PUBLISHED_SLOPES,
    bucket_errors,
    evenness_error,
    slope_error,
)
from viz_core.positional import alibi_bias, alibi_slopes


@own_figures("alibi")
def alibi(chapter: Chapter, _inputs: TokenInputs) -> None:
    names = chapter.words.group("figure")
    left, right = st.columns(2, gap="medium")
    with left:
        heads = int(chapter.controls.slider("alibi-heads", 1, 16, 8))
    chapter.controls.clamp("alibi-head", heads)
    with right:
        head = int(chapter.controls.number("alibi-head", 1, heads, 1)) - 1
    slopes = alibi_slopes(heads)
    bias = alibi_bias(heads, 32, 32)[head]
    summary = [f"{slope:.4g}" for slope in slopes.tolist()]
    broken = chapter.break_it("from-one", "logarithm")

    def penalty(setting: str) -> None:
        if setting:
            wrong = wrong_penalty(setting, heads, 32)[head]
            figure = penalty_figure(wrong.numpy(), names)
            chapter.figure("broken-penalty", figure, head=head + 1, lowest=f"{wrong.min():.3g}")
            return
        chapter.figure(
            "penalty",
            penalty_figure(bias.numpy(), names),
            head=head + 1,
            slope=f"{slopes[head]:.4g}",
            lowest=f"{bias.min():.3g}",
            half=f"{math.log(2) / float(slopes[head]):.3g}",
        )

    if broken:
        chapter.side_by_side(broken, penalty)
    else:
        left, right = st.columns(2, gap="medium")
        with left:
            chapter.figure("slopes", slopes_figure(slopes.numpy(), head, names), heads=heads, summary=summary)
        with right:
            penalty("")
    with chapter.claims():
        for count in PUBLISHED_SLOPES:
            given = alibi_slopes(count)
            given = given / given[0] if broken == "from-one" else given
            chapter.claim("slopes", slope_error(given), 1e-15, heads=count)
        uneven = wrong_penalty(broken, heads, 32) if broken == "logarithm" else alibi_bias(heads, 32, 32)
        chapter.claim("even", evenness_error(uneven), ROUNDING)


@own_figures("t5")
def t5(chapter: Chapter, _inputs: TokenInputs) -> None:
    names, controls = chapter.words.group("figure"), chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        bidirectional = controls.toggle("bidirectional", True)
        num_buckets = controls.select_slider("buckets", (8, 16, 32, 64), 32)
        max_distance = controls.select_slider("max-distance", (64, 128, 256), 128)
    found = bucket_map(bidirectional, num_buckets, max_distance)
    broken = chapter.break_it("one-way")

    def draw(setting: str) -> None:
        shown = bucket_map(False, num_buckets, max_distance) if setting else found
        figure = bucket_figure(shown.offsets.numpy(), shown.buckets.numpy(), names)
        chapter.figure("buckets", figure, used=shown.used, reach=int(shown.offsets[-1]))

    chapter.side_by_side(broken, draw)
    ranges = found.ranges
    chapter.finding("directions", bidirectional, exact=found.exact)
    cells = [f"{low}" if low == high else f"{low}–{high}" if high is not None else f"{low}+" for _, low, high in ranges]
    chapter.text("bucket-table", max_distance=max_distance, last=ranges[-1][1])
    st.dataframe(pd.DataFrame([cells], index=[chapter.words("distances")], columns=[str(b) for b, _, _ in ranges]))
    with chapter.claims():
        chapter.claim("buckets", bucket_errors(bidirectional=not broken), 0)
