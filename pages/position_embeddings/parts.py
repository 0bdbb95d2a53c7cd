"""The position-embeddings chapter: what is asked, all schemes side by side, what they cost, the words shuffled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from ui.chapter import Chapter
from ui.controls import escape
from ui.models import translator
from viz_core.figures import position_experiments, position_maps
from viz_core.figures.raster import weights_image
from viz_core.positional.order import order_residual, shuffled_order
from viz_core.positional.scheme_costs import Sizes
from viz_core.positional.schemes import SCHEMES, Scheme, Setting
from viz_core.pretrained import Translator
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.token_vectors import (
    Tokens,
    picture,
    picture_tokens,
    resize_table,
    sentence_tokens,
    shipped_position_table,
)

MODEL = "transformer-en-fr"
WIDTH = 256  # of tokens without the model, and of pictures; the model's own is the same
MOST_TOKENS = 64
HEADS = (1, 2, 4, 8)
LENGTHS = (16, 64, 256, 1024, 4096)  # squares, so that each is also a square grid
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
ORDER_MATTERS = 1e-3  # far above rounding, far below what any scheme here does


@dataclass(frozen=True, eq=False)
class Asked:
    """The tokens and the layer the reader asks to see, the opened head, and what of it is shown."""

    tokens: Tokens
    setting: Setting
    head: int
    shown: str

    def shown_map(self, scheme: Scheme) -> np.ndarray:
        """What is shown of a scheme, for the opened head."""
        show = {"added": scheme.position_scores, "scores": scheme.scores, "weights": scheme.weights}[self.shown]
        return show(self.setting)[self.head].numpy()


def ask(chapter: Chapter) -> Asked | None:
    """The sentence or the picture, the heads and what to show; None where there are no tokens yet."""
    controls = chapter.controls
    with chapter.card("ask"):
        first, second = st.columns([2, 3], gap="medium")
        with first:
            source = controls.choice("source", ("sentence", "one-word", "picture"), "sentence")
        with second:
            tokens = _picture(chapter) if source == "picture" else _sentence(chapter)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            shown = controls.choice("show", ("added", "scores", "weights"), "added")
            heads = controls.choice("heads", HEADS, 8)
            head = int(controls.number("head", 1, heads, 1)) - 1
            with controls.more():
                per_head = controls.toggle("per-head")
                seed = int(controls.number("seed", 0, 999, 0))
    if not tokens.labels:
        st.info(chapter.words("empty"), icon=":material/edit:")
        return None
    if tokens.total > len(tokens.labels):
        st.warning(chapter.words("cut", total=f"{tokens.total:,}", most=MOST_TOKENS), icon=":material/content_cut:")
    if source == "one-word":
        tokens = tokens.one_word()
    n, d = tokens.X.shape
    sizes = Sizes(n, d, heads, tokens.height, tokens.width, per_head=per_head)
    table = shipped_table() if source == "picture" else None
    if table is not None:
        table = resize_table(table, tokens.height, tokens.width)
    return Asked(tokens, Setting(tokens.X, sizes, table, seed), head, shown)


def side_by_side(chapter: Chapter, asked: Asked) -> None:
    """A small map of every scheme on one colour scale, each with a way to open it."""
    names = chapter.words.group("figure")
    chapter.text("side-by-side")
    st.plotly_chart(
        position_maps.scale_strip(asked.shown, names),
        key="figure-scale",
        config={"displayModeBar": False},
        alt=chapter.words("alt.scale", shown=names[asked.shown]),
    )
    maps = {scheme.name: asked.shown_map(scheme) for scheme in SCHEMES}
    figures = position_maps.small_maps(maps, asked.tokens.labels, asked.shown, names)
    with st.container(horizontal=True, gap="xsmall", key="schemes"):
        for scheme in SCHEMES:
            values = maps[scheme.name]
            label = chapter.words(f"option.{scheme.name}")
            with st.container(border=True, width=174, gap=None, key=f"card-{scheme.name}"):
                st.button(
                    label,
                    key=f"open-{scheme.name}",
                    type="tertiary",
                    help=chapter.words("open"),
                    on_click=_open,
                    args=(chapter, scheme.name),
                )
                low, high = f"{values.min():.2f}", f"{values.max():.2f}"
                chapter.figure("small", figures[scheme.name], scheme=label, low=low, high=high)
                st.caption(chapter.words(f"enters.{scheme.enters}"))
    chapter.look_for("side-by-side")


def costs(chapter: Chapter, asked: Asked) -> None:
    """Parameters and memory of each scheme as functions of n and h, and whether it goes beyond its length."""
    names = {**chapter.words.group("figure"), **chapter.words.group("option")}
    chapter.text("costs")
    with st.container(horizontal=True, gap="medium"):
        what = chapter.controls.choice("count", ("parameters", "stored_bytes", "computed_bytes"), "parameters")
        along = chapter.controls.choice("along", ("tokens", "heads"), "tokens")
    with st.container(horizontal=True, gap="medium"):
        n = chapter.controls.stops("n", LENGTHS, 256)
        h = chapter.controls.stops("cost-heads", (1, 2, 4, 8, 16), 8)
    per_head = asked.setting.sizes.per_head
    xs = LENGTHS if along == "tokens" else (1, 2, 4, 8, 16)
    grid = [_square(x, h, per_head) if along == "tokens" else _square(n, x, per_head) for x in xs]
    lines = {scheme.name: (xs, [getattr(scheme.cost(sizes), what) for sizes in grid]) for scheme in SCHEMES}
    chapter.figure(
        "cost",
        position_experiments.cost_figure(lines, names[along], names[what], names),
        what=names[what],
        along=names[along],
        learned=f"{lines['learned'][1][-1]:,}",
        relative=f"{lines['relative'][1][-1]:,}",
    )
    number = st.column_config.NumberColumn(format="localized")
    wide = st.column_config.TextColumn(width="medium")
    columns = {chapter.words(f"column.{name}"): number for name in ("parameters", "stored", "computed")}
    st.dataframe(
        _cost_table(chapter, _square(n, h, per_head)),
        hide_index=True,
        height="content",
        column_config={**columns, chapter.words("column.formula"): wide},
    )
    chapter.look_for("cost-table")


def shuffle(chapter: Chapter, asked: Asked) -> None:
    """The permutation test: shuffle the words before attention or after it, under every scheme."""
    labels = asked.tokens.labels
    chapter.text("shuffle")
    if len(set(labels)) < 2:
        st.info(chapter.words("nothing-to-shuffle"), icon=":material/edit:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        number = int(chapter.controls.slider("order", 1, 20, 1))
        backwards = chapter.controls.toggle("backwards")
    order = torch.arange(len(labels)).flip(0) if backwards else shuffled_order(labels, number)
    st.markdown(
        chapter.words(
            "shuffled",
            before=escape(" ".join(labels)),
            after=escape(" ".join(labels[i] for i in order.tolist())),
        )
    )
    residuals = {scheme.name: order_residual(scheme, asked.setting, order) for scheme in SCHEMES}
    names = {**chapter.words.group("figure"), **chapter.words.group("option")}
    figure = position_experiments.residual_figure(residuals, ORDER_MATTERS, names["order-residual"], names)
    summary = ", ".join(f"{names[name]} {residual:.2g}" for name, residual in residuals.items())
    chapter.figure("order", figure, summary=summary)
    with chapter.claims():
        for scheme in SCHEMES:
            if scheme.blind(asked.setting.sizes, order):
                chapter.claim("blind", residuals[scheme.name], ROUNDING, scheme=names[scheme.name])
            else:
                chapter.claim_at_least("ordered", residuals[scheme.name], ORDER_MATTERS, scheme=names[scheme.name])


def _sentence(chapter: Chapter) -> Tokens:
    start = next(sample.english for sample in sentences() if sample.id == "cat")
    text = chapter.controls.text("text", start, placeholder=chapter.words("placeholder"))
    return sentence_tokens(text, MOST_TOKENS, WIDTH, _model())


def _picture(chapter: Chapter) -> Tokens:
    sides, shown = st.columns([3, 1], gap="medium")
    with sides:
        height = int(chapter.controls.slider("height", 1, 8, 5))
        width = int(chapter.controls.slider("width", 1, 8, 7))
    shown.image(weights_image(picture(height, width), side=240, root=False), alt=chapter.words("alt.picture"))
    table = shipped_table()
    return picture_tokens(height, width, WIDTH if table is None else table.shape[1])


def _model() -> Translator | None:
    """The shipped translator for its vocabulary; without it words with random vectors do as well."""
    try:
        return translator(MODEL)
    except ValueError:  # no checkpoint, or no such device
        return None


@st.cache_resource(max_entries=1, show_spinner=False)
def shipped_table() -> Tensor | None:
    """The learned positions of the shipped picture model, where one ships whose width all numbers of heads divide."""
    table = shipped_position_table()
    return table if table is not None and table.shape[1] % (2 * max(HEADS)) == 0 else None


def _square(num_tokens: int, num_heads: int, per_head: bool) -> Sizes:
    side = round(num_tokens**0.5)
    return Sizes(num_tokens, WIDTH, num_heads, side, side, per_head=per_head)


def _cost_table(chapter: Chapter, sizes: Sizes) -> pd.DataFrame:
    words = chapter.words
    rows = []
    for scheme in SCHEMES:
        cost = scheme.cost(sizes)
        rows.append(
            {
                words("column.scheme"): words(f"option.{scheme.name}"),
                words("column.formula"): words(f"formula.{scheme.name}"),
                words("column.parameters"): cost.parameters,
                words("column.stored"): cost.stored_bytes,
                words("column.computed"): cost.computed_bytes,
                words("column.extends"): words("yes" if scheme.extends else "no"),
                words("column.why"): words(f"extends.{scheme.name}"),
            }
        )
    return pd.DataFrame(rows)


def _open(chapter: Chapter, name: str) -> None:
    """Show one scheme closer: its tab, and it in the list."""
    st.session_state[chapter.controls.key("section")] = chapter.words("option.closer")
    st.session_state[chapter.controls.key("scheme")] = name
