"""One position scheme at a time, each with the figures that only it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import streamlit as st
import torch

from pages.position_embeddings import grid_figures as position_grid
from pages.position_embeddings import skew_figures as skew
from pages.position_embeddings.parts import ROUNDING, WIDTH, Asked
from ui.chapter import Chapter
from ui.contents import page, page_file
from viz_core.figures import position_bias, position_experiments, position_maps, position_rotary
from viz_core.lessons.position_embeddings.grid_terms import grid_terms
from viz_core.lessons.position_embeddings.learn_table import offset_share
from viz_core.lessons.position_embeddings.rotary_decay import (
    rotary_bound_ratio,
    rotary_decay,
    rotary_products,
    rotary_shift_residual,
)
from viz_core.lessons.position_embeddings.scheme_proofs import (
    PUBLISHED_SLOPES,
    bucket_errors,
    clipping_spread,
    evenness_error,
    row_spread,
    skew_error,
    slope_error,
)
from viz_core.positional import (
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    sinusoidal_table,
    t5_relative_position_bucket,
)
from viz_core.positional.scheme_costs import Sizes
from viz_core.positional.schemes import BY_NAME, SCHEMES, Setting, learned_table, relative_2d_module
from viz_core.positional.t5 import t5_bucket_ranges
from viz_core.pretrained.token_vectors import picture_tokens

EXACT = 1e-9  # float64


def one_scheme(chapter: Chapter, asked: Asked) -> None:
    """A scheme of the reader's choice: what it does, its map, whether it goes on, and figures of its own."""
    names = tuple(scheme.name for scheme in SCHEMES)
    scheme = BY_NAME[chapter.controls.select("scheme", names, "relative")]
    chapter.text(f"about.{scheme.name}")
    extends = chapter.words("extends-yes" if scheme.extends else "extends-no")
    st.markdown(f"{extends} {chapter.words(f'extends.{scheme.name}')}")
    _OWN_FIGURES[scheme.name](chapter, asked)
    labels = chapter.words.group("figure")
    chapter.heading("map")
    if scheme.name == "shaw":
        asked = _clipped(chapter, asked)
    values = asked.shown_map(scheme)
    chapter.figure(
        "map",
        position_maps.large_map(values, asked.tokens.labels, asked.shown, labels),
        scheme=chapter.words(f"option.{scheme.name}"),
        shown=labels[asked.shown],
        head=asked.head + 1,
        low=f"{values.min():.2f}",
        high=f"{values.max():.2f}",
    )


def _none(chapter: Chapter, asked: Asked) -> None:
    """Nothing of its own: its map is the whole story."""


def _sinusoidal(chapter: Chapter, asked: Asked) -> None:
    n, d = asked.setting.X.shape
    _similarity(chapter, "sinusoidal", sinusoidal_table(n, d))
    for name in ("sinusoidal-encoding", "relative-projection"):
        if page_file(name).is_file():
            st.page_link(page(name), icon=":material/arrow_forward:")


def _learned(chapter: Chapter, asked: Asked) -> None:
    name = "fresh" if asked.setting.table is None else "shipped"
    chapter.text(f"table-{name}")
    _similarity(chapter, name, learned_table(asked.setting))


def _similarity(chapter: Chapter, name: str, table: torch.Tensor) -> None:
    share = offset_share(table @ table.T) if len(table) > 1 else 1.0
    figure = position_experiments.similarity_figure({name: table.numpy()}, chapter.words.group("figure"))
    chapter.figure("similarity", figure, share=f"{share:.0%}", n=len(table))


def _absolute(chapter: Chapter, asked: Asked) -> None:
    """With the same word everywhere all queries are the same, and so are all rows."""
    bias = BY_NAME["absolute"].position_scores(asked.setting.one_word())
    with chapter.claims():
        chapter.claim("same-rows", row_spread(bias), ROUNDING)


def _relative(chapter: Chapter, _asked: Asked) -> None:
    names = chapter.words.group("figure")
    chapter.heading("skew")
    left, right = st.columns(2, gap="medium")
    with left:
        n = int(chapter.controls.slider("skew-n", 1, 12, 4))
    with right:
        step = int(chapter.controls.slider("step", 0, len(skew.STAGES) - 1, 0))
    stage = skew.STAGES[step]
    chapter.text(f"stage.{stage}", n=n, offsets=2 * n - 1, padded=2 * n, line=2 * n * n, extra=n - 1, rows=n + 1)
    rows, columns = skew.skew_stages(n)[stage].shape
    figure = skew.skew_figure(n, stage, names)
    chapter.figure("skew", figure, n=n, stage=names[f"stage-{stage}"], rows=rows, columns=columns)
    with chapter.claims():
        chapter.claim("skew", skew_error(n), 0.0, n=n)
    chapter.heading("index")
    chapter.figure("table", skew.table_figure(n, names), last=2 * n - 2, reach=n - 1)
    chapter.figure("index", skew.index_figure(n, None, names), n=n, last=2 * n - 2)


def _shaw(chapter: Chapter, asked: Asked) -> None:
    names = chapter.words.group("figure")
    k = int(chapter.controls.slider("k", 0, 16, 4))
    n = len(asked.tokens.labels)
    chapter.figure("index", skew.index_figure(n, k, names), n=n, last=2 * k)
    clipped = replace(asked.setting, sizes=replace(asked.setting.sizes, max_distance=k))
    bias = BY_NAME["shaw"].position_scores(clipped.one_word())
    with chapter.claims():
        chapter.claim("clipped", clipping_spread(bias, k), ROUNDING, k=k)
    chapter.figure("shaw", position_bias.shaw_figure(k, names))


def _clipped(chapter: Chapter, asked: Asked) -> Asked:
    """The same, with the clipping distance that the control above it has."""
    k = int(st.session_state[chapter.controls.key("k")])
    setting = replace(asked.setting, sizes=replace(asked.setting.sizes, max_distance=k))
    return replace(asked, setting=setting)


def _relative_2d(chapter: Chapter, asked: Asked) -> None:
    names, controls = chapter.words.group("figure"), chapter.controls
    sizes = st.columns(4, gap="medium")
    with sizes[0]:
        height = int(controls.slider("grid-height", 1, 8, 4))
    with sizes[1]:
        width = int(controls.slider("grid-width", 1, 8, 6))
    _keep_inside(controls.key("row"), height)
    _keep_inside(controls.key("column"), width)
    with sizes[2]:
        row = int(controls.number("row", 1, height, min(2, height))) - 1
    with sizes[3]:
        column = int(controls.number("column", 1, width, min(3, width))) - 1
    tokens = picture_tokens(height, width, WIDTH)
    heads = asked.setting.sizes.num_heads
    layer = Sizes(height * width, WIDTH, heads, height, width, per_head=asked.setting.sizes.per_head)
    setting = Setting(tokens.X, layer, seed=asked.setting.seed)
    q, _, _, bias = BY_NAME["relative-2d"].project(setting)
    terms = grid_terms(q[0], relative_2d_module(setting), row, column, asked.head)
    chapter.figure(
        "grid",
        position_grid.grid_figure(terms, row, column, names),
        on_select=lambda: _take_cell(chapter),
        height=height,
        width=width,
        row=row + 1,
        column=column + 1,
    )
    with chapter.claims():
        from_module = bias[0, asked.head, row * width + column].reshape(height, width)
        chapter.claim("sum", float((terms.total - from_module).abs().max()), ROUNDING)
    chapter.text(
        "factored",
        height=height,
        width=width,
        vectors=2 * height + 2 * width - 2,
        pairs=(2 * height - 1) * (2 * width - 1),
    )


def _keep_inside(key: str, most: int) -> None:
    """A cell chosen on a larger grid moves to the edge of a smaller one."""
    if st.session_state.get(key, 1) > most:
        st.session_state[key] = most


def _take_cell(chapter: Chapter) -> None:
    """A click on a cell makes it the query."""
    points = st.session_state["figure-grid"].selection.points
    if points:
        row, column = points[0]["customdata"]
        st.session_state[chapter.controls.key("row")] = int(row) + 1
        st.session_state[chapter.controls.key("column")] = int(column) + 1


def _rotary(chapter: Chapter, _asked: Asked) -> None:
    names, controls = chapter.words.group("figure"), chapter.controls
    columns = st.columns(4, gap="medium")
    with columns[0]:
        m = int(controls.slider("m", 0, 100, 8))
    with columns[1]:
        n = int(controls.slider("key-position", 0, 100, 3))
    with columns[2]:
        d = controls.stops("d", (4, 8, 16, 32, 64, 128), 64)
    with columns[3]:
        base = controls.number("base", 2, 1_000_000, 10_000, 1000)
    chapter.figure("pairs", position_rotary.pairs_figure(m, n, d, base, names), m=m, n=n, pairs=min(d, 16) // 2)
    ones = torch.ones(d, dtype=torch.float64) * d**-0.5
    offsets = torch.arange(-200, 201)
    products, bound = rotary_products(ones, ones, offsets, base), rotary_decay(offsets, d, base)
    here = float(rotary_products(ones, ones, torch.tensor([n - m]), base))
    chapter.text("product", m=m, n=n, offset=f"{n - m:+d}", product=f"{here:.6f}")
    chapter.figure(
        "decay",
        position_rotary.decay_figure(offsets.numpy(), products.numpy(), bound.numpy(), n - m, names),
        here=f"{here:.3f}",
        far=f"{float(bound[-1]):.3f}",
    )
    generator = torch.Generator().manual_seed(d)
    q, k = torch.randn(2, d, dtype=torch.float64, generator=generator)
    turned = apply_rotary(q.expand(1, 1, len(offsets), -1), offsets, base)
    with chapter.claims():
        chapter.claim("offset-only", rotary_shift_residual(q, k, offsets, base), EXACT)
        chapter.claim("bound", rotary_bound_ratio(q, k, offsets, base), 1.0)
        chapter.claim("length", float((turned.norm(dim=-1) - q.norm()).abs().max()), EXACT)


def _alibi(chapter: Chapter, _asked: Asked) -> None:
    names = chapter.words.group("figure")
    left, right = st.columns(2, gap="medium")
    with left:
        heads = int(chapter.controls.slider("alibi-heads", 1, 16, 8))
    _keep_inside(chapter.controls.key("alibi-head"), heads)
    with right:
        head = int(chapter.controls.number("alibi-head", 1, heads, 1)) - 1
    slopes = alibi_slopes(heads)
    bias = alibi_bias(heads, 32, 32)[head]
    summary = ", ".join(f"{slope:.4g}" for slope in slopes.tolist())
    left, right = st.columns(2, gap="medium")
    with left:
        chapter.figure("slopes", position_bias.slopes_figure(slopes.numpy(), head, names), heads=heads, summary=summary)
    figure = position_bias.penalty_figure(bias.numpy(), names)
    with right:
        chapter.figure("penalty", figure, head=head + 1, slope=f"{slopes[head]:.4g}", lowest=f"{bias.min():.3g}")
    with chapter.claims():
        for count in PUBLISHED_SLOPES:
            chapter.claim("slopes", slope_error(count), 1e-15, heads=count)
        chapter.claim("even", evenness_error(heads, 32), ROUNDING)


def _t5(chapter: Chapter, _asked: Asked) -> None:
    names, controls = chapter.words.group("figure"), chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        bidirectional = controls.toggle("bidirectional", True)
        num_buckets = controls.stops("buckets", (8, 16, 32, 64), 32)
        max_distance = controls.stops("max-distance", (64, 128, 256), 128)
    reach = max_distance + max_distance // 4
    offsets = torch.arange(-reach, reach + 1)
    buckets = t5_relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    chapter.figure(
        "buckets",
        position_bias.bucket_figure(offsets.numpy(), buckets.numpy(), names),
        used=len(buckets.unique()),
        reach=reach,
    )
    ranges = t5_bucket_ranges(bidirectional, num_buckets, max_distance)
    cells = [f"{low}" if low == high else f"{low}–{high}" if high is not None else f"{low}+" for _, low, high in ranges]
    chapter.text("bucket-table")
    st.dataframe(pd.DataFrame([cells], index=[chapter.words("distances")], columns=[str(b) for b, _, _ in ranges]))
    with chapter.claims():
        chapter.claim("buckets", bucket_errors(), 0)


_OWN_FIGURES: dict[str, Callable[[Chapter, Asked], None]] = {
    "none": _none,
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "absolute": _absolute,
    "relative": _relative,
    "shaw": _shaw,
    "relative-2d": _relative_2d,
    "rotary": _rotary,
    "alibi": _alibi,
    "t5": _t5,
}
