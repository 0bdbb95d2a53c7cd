"""Schemes that are a table by offset: the skew step by step, Shaw's clipping."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from pages.position_embeddings.offset_figures import index_figure, shaw_figure, table_figure
from pages.position_embeddings.own_figures import own_figures
from pages.position_embeddings.playback import Slideshow
from pages.position_embeddings.skew_figures import skew_figure
from pages.position_embeddings.tokens import ROUNDING, TokenInputs
from ui.chapter.chapter import Chapter
from viz_core.lessons.position_embeddings.broken import skew_of_left_padding
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, skew_stages
from viz_core.lessons.position_embeddings.scheme_proofs import clipping_spread, skew_error
from viz_core.positional import relative_to_absolute
from viz_core.positional.register import BY_NAME


@own_figures("relative")
def relative(chapter: Chapter, _inputs: TokenInputs) -> None:
    names = chapter.words.group("figure")
    chapter.heading("skew")
    slideshow = Slideshow(chapter.controls.key("step"), len(STAGES) - 1)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        n = int(chapter.controls.slider("skew-n", 1, 12, 4))
        slideshow.button(chapter.words("play"))
    chapter.fragment(lambda: _skew(chapter, n, slideshow), every=slideshow.every)
    with chapter.claims():
        skew = skew_of_left_padding if chapter.break_and_explain("left-padding") else relative_to_absolute
        chapter.claim("skew", skew_error(n, skew), 0.0, n=n)
    chapter.text("graph")
    chapter.heading("index")
    chapter.figure("table", partial(table_figure, n, names), height=124, last=2 * n - 2, reach=n - 1)
    chapter.figure("index", partial(index_figure, n, None, names), n=n, last=2 * n - 2)


def _skew(chapter: Chapter, n: int, slideshow: Slideshow) -> None:
    """One stage of the skew: slider, words and picture show the same one, while it plays too."""
    names = chapter.words.group("figure")
    slideshow.step()
    stage = STAGES[int(chapter.controls.slider("step", 0, len(STAGES) - 1, 0))]
    chapter.text(f"stage.{stage}", n=n, offsets=2 * n - 1, padded=2 * n, line=2 * n * n, extra=n - 1, rows=n + 1)
    rows, columns = skew_stages(n)[stage].shape
    figure = skew_figure(n, stage, names)
    chapter.figure("skew", figure, n=n, stage=names[f"stage-{stage}"], rows=rows, columns=columns)


@own_figures("shaw")
def shaw(chapter: Chapter, inputs: TokenInputs) -> TokenInputs:
    names = chapter.words.group("figure")
    k = int(chapter.controls.slider("k", 0, 16, 4))
    n = len(inputs.tokens.labels)
    clipped = replace(inputs.layer, sizes=replace(inputs.layer.sizes, max_distance=k))
    broken = chapter.break_it("unclipped")

    def draw(setting: str) -> None:
        chapter.figure("index", index_figure(n, None if setting else k, names), n=n, last=2 * (n - 1 if setting else k))

    chapter.side_by_side(broken, draw)
    with chapter.claims():
        scheme = "relative" if broken else "shaw"
        bias = clipped.one_word().position_scores(BY_NAME[scheme])
        chapter.claim("clipped", clipping_spread(bias, k), ROUNDING, k=k)
    chapter.figure("shaw", partial(shaw_figure, k, names))
    return replace(inputs, layer=clipped)
