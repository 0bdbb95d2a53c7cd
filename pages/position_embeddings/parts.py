"""One position scheme at a time, with the figures that only it needs."""

import math
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st
import torch
from PIL import Image
from torch import Tensor

from pages.position_embeddings.figures import (
    OWN_FIGURES,
    decay_figure,
    grid_figure,
    own_figures,
    pairs_figure,
    skew_figure,
)
from pages.position_embeddings.offset_figures import (
    bucket_figure,
    index_figure,
    shaw_figure,
    similarity_figure,
    table_figure,
)
from pages.position_embeddings.tokens import ROUNDING, WHERE_TRAINED, WIDTH, TokenInputs, link_to
from ui.blocks.figures import penalty_figure, slopes_figure, token_map
from ui.blocks.over_picture import signed_image
from ui.chapter.chapter import Chapter
from ui.chapter.parts import Slideshow
from ui.widgets.chart import Point
from viz_core.lessons.position_embeddings.order import SharedLayer, picture_tokens, table_offset_share
from viz_core.lessons.position_embeddings.scheme_parts import (
    PUBLISHED_SLOPES,
    STAGES,
    bucket_errors,
    bucket_map,
    clipping_spread,
    column_major,
    decay_curves,
    evenness_error,
    layer_terms,
    rotary_proofs,
    row_spread,
    skew_error,
    skew_of_left_padding,
    skew_stages,
    slope_error,
    wrong_penalty,
)
from viz_core.positional import BY_NAME, alibi_bias, alibi_slopes, relative_to_absolute
from viz_core.positional.entry import SchemeSizes
from viz_core.positional.learned import LEARNED
from viz_core.positional.sinusoidal import SINUSOIDAL


def one_scheme(chapter: Chapter, inputs: TokenInputs) -> None:
    """The chosen scheme: what it does, its own figures, and its map."""
    scheme = BY_NAME[chapter.controls.select("scheme", tuple(BY_NAME), "relative")]
    chapter.text(f"about.{scheme.name}", formula=scheme.formula)
    extends = chapter.words("extends-yes" if scheme.extrapolates else "extends-no")
    st.markdown(f"{extends} {chapter.words(f'extends.{scheme.name}')}")
    if scheme.name in OWN_FIGURES:
        inputs = OWN_FIGURES[scheme.name](chapter, inputs) or inputs
    labels = chapter.words.group("figure")
    chapter.heading("map")
    values = inputs.map_of(scheme)
    chapter.figure(
        "map",
        partial(token_map, values, inputs.tokens.labels, inputs.quantity, labels),
        scheme=chapter.words(f"option.{scheme.name}"),
        shown=labels[inputs.quantity],
        head=inputs.head + 1,
        low=f"{values.min():.2f}",
        high=f"{values.max():.2f}",
    )


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
        summed = bool(chapter.break_it("summed"))
        chapter.claim("offset-only", proofs.added_shift if summed else proofs.shift, EXACT)
        chapter.claim("length", proofs.added_length if summed else proofs.length, EXACT)


@own_figures("sinusoidal")
def sinusoidal(chapter: Chapter, inputs: TokenInputs) -> None:
    _similarity(chapter, "sinusoidal", inputs.layer.input_table(SINUSOIDAL))
    for name in ("sinusoidal-encoding", "relative-projection"):
        link_to(name)


@own_figures("learned")
def learned(chapter: Chapter, inputs: TokenInputs) -> None:
    """The table that a shipped picture model has learned, or a random one for other tokens."""
    chapter.text(f"table-{inputs.trained}", model=inputs.model)
    link_to(WHERE_TRAINED[inputs.trained])
    name = "fresh" if inputs.layer.table is None else "shipped"
    _similarity(chapter, name, inputs.layer.input_table(LEARNED))


def _similarity(chapter: Chapter, name: str, table: Tensor) -> None:
    share = table_offset_share(table)
    figure = similarity_figure({name: table.numpy()}, chapter.words.group("figure"))
    chapter.figure("similarity", figure, share=f"{share:.0%}", n=len(table))


@own_figures("absolute")
def absolute(chapter: Chapter, inputs: TokenInputs) -> None:
    """Equal rows where the same word is at every position."""
    with chapter.claims():
        scheme = "relative" if chapter.break_it("by-offset") else "absolute"
        bias = inputs.layer.one_word().position_scores(BY_NAME[scheme])
        chapter.claim("same-rows", row_spread(bias), ROUNDING)


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


@own_figures("relative-2d")
def relative_2d(chapter: Chapter, inputs: TokenInputs) -> None:
    names, controls = chapter.words.group("figure"), chapter.controls
    sizes = st.columns(4, gap="medium")
    with sizes[0]:
        height = int(controls.slider("grid-height", 1, 8, 4))
    with sizes[1]:
        width = int(controls.slider("grid-width", 1, 8, 6))
    controls.clamp("row", height)
    controls.clamp("column", width)
    with sizes[2]:
        row = int(controls.number("row", 1, height, min(2, height))) - 1
    with sizes[3]:
        column = int(controls.number("column", 1, width, min(3, width))) - 1
    tokens = picture_tokens(height, width, WIDTH)
    heads = inputs.layer.sizes.num_heads
    grid_sizes = SchemeSizes(height * width, WIDTH, heads, height, width, per_head=inputs.layer.sizes.per_head)
    terms, from_module = layer_terms(
        SharedLayer(tokens.X, grid_sizes, seed=inputs.layer.seed), row, column, inputs.head
    )
    broken = chapter.break_it("column-major")
    shown = column_major(terms) if broken else terms

    def draw(setting: str) -> None:
        chapter.figure(
            "grid",
            grid_figure(shown if setting else terms, row, column, names),
            on_click=lambda point: _take_cell(chapter, point),
            height=height,
            width=width,
            row=row + 1,
            column=column + 1,
        )

    chapter.side_by_side(broken, draw)
    with chapter.claims():
        chapter.claim("sum", float((shown.total - from_module).abs().max()), ROUNDING)
    chapter.text(
        "factored",
        height=height,
        width=width,
        vectors=2 * height + 2 * width - 2,
        pairs=(2 * height - 1) * (2 * width - 1),
    )


def _take_cell(chapter: Chapter, point: Point) -> None:
    """A click on a cell makes it the query."""
    row, column, _ = point["customdata"]
    st.session_state[chapter.controls.key("row")] = int(row) + 1
    st.session_state[chapter.controls.key("column")] = int(column) + 1


@own_figures("relative")
def relative(chapter: Chapter, _inputs: TokenInputs) -> None:
    names = chapter.words.group("figure")
    chapter.heading("skew")
    slideshow = Slideshow(chapter.controls, "step", range(len(STAGES)))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        n = int(chapter.controls.slider("skew-n", 1, 12, 4))
        slideshow.button()
    chapter.fragment(lambda: _skew(chapter, n, slideshow), every=slideshow.every)
    with chapter.claims():
        skew = skew_of_left_padding if chapter.break_it("left-padding") else relative_to_absolute
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


def gallery_picture() -> Image.Image:
    """What relative positions add to the scores of one repeated word: one value for each offset."""
    line = SharedLayer(torch.ones(24, 32), SchemeSizes(24, 32, 1, 1, 24))
    scores = line.position_scores(BY_NAME["relative"])[0]
    return signed_image(scores.numpy(), float(scores.abs().max()))
