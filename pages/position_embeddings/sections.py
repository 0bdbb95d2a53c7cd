"""Sections of the page: what order changes, schemes side by side, costs, models that ship, sources."""

import html
import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
import torch
from torch import Tensor

from pages.position_embeddings.figures import scale_strip, small_maps
from pages.position_embeddings.offset_figures import similarity_figure
from pages.position_embeddings.tokens import ROUNDING, WHERE_TRAINED, WIDTH, TokenInputs, link_to
from ui.blocks.figures import scale_of
from ui.blocks.over_picture import signed_image, weights_image
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.model_card import model_title
from ui.widgets import traces
from ui.widgets.chart import named_parts
from ui.widgets.choices import Mark, Marks
from ui.widgets.figure_style import ACCENT, Labels, lay_out
from viz_core.lessons.position_embeddings.order import (
    LearnedTable,
    is_striped,
    order_changes,
    shipped_position_tables,
    table_offset_share,
)
from viz_core.models.vit import resize_grid
from viz_core.positional import (
    BY_NAME,
    SCHEMES,
    RelativePositionEmbedding1d,
    alibi_slopes,
    sinusoidal_table,
    t5_relative_position_bucket,
)
from viz_core.positional.entry import SchemeSizes
from viz_core.pretrained.samples import sentence
from viz_core.pretrained.token_vectors import shuffled_order

_THUMBNAIL = 68  # pixels; eleven side by side


def gallery(chapter: Chapter, inputs: TokenInputs) -> None:
    """A picture of every scheme's map, once it is in view."""
    shown = chapter.words.group("figure")[inputs.quantity]
    st.caption(chapter.words("gallery", count=len(SCHEMES), shown=shown))
    chapter.lazy("gallery", lambda: _pictures(chapter, inputs), 130)


def _pictures(chapter: Chapter, inputs: TokenInputs) -> None:
    maps = [inputs.map_of(scheme) for scheme in SCHEMES]
    _, low, high = scale_of(inputs.quantity)
    names = [chapter.words(f"option.{scheme.name}") for scheme in SCHEMES]
    ends = [{"low": f"{values.min():.2f}", "high": f"{values.max():.2f}"} for values in maps]
    alts = [chapter.words("alt.small", scheme=name, **each) for name, each in zip(names, ends, strict=True)]
    pictures = [signed_image(values, high) if low else weights_image(values, root=False) for values in maps]
    st.image(pictures, width=_THUMBNAIL, caption=names, alt=alts)


def side_by_side(chapter: Chapter, inputs: TokenInputs) -> None:
    """A small map of every scheme on one colour scale, each with a button that opens it."""
    names = chapter.words.group("figure")
    if inputs.tokens is not inputs.typed:
        chapter.text("first-word", word=escape(inputs.tokens.labels[0]))
    chapter.figure(
        "scale", scale_strip(inputs.quantity, names), bar=False, shown=names[inputs.quantity], count=len(SCHEMES)
    )
    maps = {scheme.name: inputs.map_of(scheme) for scheme in SCHEMES}
    figures = small_maps(maps, inputs.tokens.labels, inputs.quantity, names)
    with st.container(horizontal=True, gap="xsmall", key="schemes"):
        for scheme in SCHEMES:
            values = maps[scheme.name]
            label = chapter.words(f"option.{scheme.name}")
            with st.container(border=True, width=174, height="stretch", gap=None, key=f"card-{scheme.name}"):
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
    chapter.text("side-by-side", count=len(SCHEMES))
    chapter.text(f"trained-{inputs.trained}", model=inputs.model)
    if inputs.trained != "nothing":
        link_to(WHERE_TRAINED[inputs.trained])
    if len(inputs.tokens.labels) > 1:
        striped = [chapter.words(f"option.{name}") for name, values in maps.items() if is_striped(values)]
        chapter.finding("stripes", bool(striped), striped=striped)
    chapter.text("two-words")


def _open(chapter: Chapter, name: str) -> None:
    """Open a scheme in the section "One scheme, closer"."""
    st.session_state[chapter.controls.key("open-closer")] = True
    st.session_state[chapter.controls.key("scheme")] = name


_SIDE = 7  # all grids are resized to this side, so that they can be compared


def across_models(chapter: Chapter) -> None:
    """Similarity of positions in sinusoids and in the table of every shipped picture model."""
    chapter.text("across")
    names = chapter.words.group("figure")
    tables = {names["table-sinusoidal"]: sinusoidal_table(_SIDE**2, WIDTH)}
    for card, positions in _tables():
        side = math.isqrt(len(positions))
        tables[names.get(card.name, model_title(card))] = resize_grid(positions, (side, side), (_SIDE, _SIDE))
    shares = [f"{title} {table_offset_share(table):.0%}" for title, table in tables.items()]
    titles = {f"table-{i}": title for i, title in enumerate(tables)}
    figure = similarity_figure({str(i): table.numpy() for i, table in enumerate(tables.values())}, names | titles)
    chapter.figure("across", figure, shares=shares, side=_SIDE)


@st.cache_resource(max_entries=1, show_spinner=False)
def _tables() -> list[LearnedTable]:
    return shipped_position_tables()


LENGTHS = (16, 64, 256, 1024, 4096)  # squares, so that each is also a square grid


def costs(chapter: Chapter, inputs: TokenInputs) -> None:
    """Parameters and memory of each scheme as functions of n and h, and whether it extends beyond its length."""
    chapter.text("costs")
    with st.container(horizontal=True, gap="medium"):
        n = chapter.controls.select_slider("n", LENGTHS, 256)
        h = chapter.controls.select_slider("cost-heads", (1, 2, 4, 8, 16), 8)
    side = round(n**0.5)
    sizes = SchemeSizes(n, WIDTH, h, side, side, per_head=inputs.layer.sizes.per_head)
    number = st.column_config.NumberColumn(format="localized")
    wide = st.column_config.TextColumn(width="medium")
    columns = {chapter.words(f"column.{name}"): number for name in ("parameters", "stored", "computed")}
    st.dataframe(
        _cost_table(chapter, sizes),
        hide_index=True,
        height="content",
        column_config={**columns, chapter.words("column.formula"): wide},
    )
    _length_limits(chapter)
    one = n**2 * WIDTH // h
    chapter.text("shared-cost", n=f"{n:,}", h=h, own=f"{h * one:,}", shared=f"{one:,}")


def _cost_table(chapter: Chapter, sizes: SchemeSizes) -> pd.DataFrame:
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
            }
        )
    return pd.DataFrame(rows)


def _length_limits(chapter: Chapter) -> None:
    """Whether each scheme is defined at any length, and why, in a table whose lines may break."""
    words = chapter.words
    rows = [[words(f"column.{name}") for name in ("scheme", "extends", "why")], ["---"] * 3]
    for scheme in SCHEMES:
        defined = words("yes" if scheme.extrapolates else "no")
        rows.append([words(f"option.{scheme.name}"), defined, words(f"extends.{scheme.name}")])
    st.markdown("\n".join(f"| {' | '.join(row)} |" for row in rows))


ORDER_MATTERS = 1e-3  # far above rounding, far below the change under any scheme that sees order


_CAT = {"text": sentence("cat"), "order": 1, "source": "one-word"}
ANSWERS = Marks(
    "figure-insight",
    (*(Mark((place - 0.45, place + 0.45), shares="y") for place in (8, 7)), Mark(y=(0.88, 1), shares="xy")),
    {**_CAT, "main-scheme": "sinusoidal"},
    {**_CAT, "main-scheme": "none"},
)
"""The bars of "black" and "is", and where all bars are without positions."""


def insight(chapter: Chapter, inputs: TokenInputs, scheme_name: str, broken: str) -> None:
    """Draw how much each word's output changes when the words are shuffled, and claim that it does."""
    labels = inputs.tokens.labels
    if len(set(labels)) < 2:
        st.info(chapter.words("nothing-to-shuffle"), icon=":material/edit:")
        return
    scheme = BY_NAME["none" if broken else scheme_name]
    order = chosen_order(chapter, inputs)
    changes = order_changes(scheme, inputs.layer, order).numpy()
    name = chapter.words(f"option.{scheme.name}")
    shuffled = [labels[i] for i in order.tolist()]
    limit = float(order_changes(BY_NAME[scheme_name], inputs.layer, order).max())
    figure = insight_figure(changes, shuffled, max(limit, ORDER_MATTERS), chapter.words.group("figure"))
    chapter.figure("insight", figure, scheme=name, largest=f"{changes.max():.2g}")
    with chapter.claim_row("claims-main"):
        if scheme_name == "none":
            chapter.claim("blind", float(changes.max()), ROUNDING, scheme=name)
        else:
            chapter.claim_at_least("noticed", float(changes.max()), ORDER_MATTERS, scheme=name)


def chosen_order(chapter: Chapter, inputs: TokenInputs) -> Tensor:
    """Show the words before and after the reader's shuffle; return the order."""
    labels = inputs.tokens.labels
    order = shuffled_order(labels, int(st.session_state[chapter.controls.key("order")]))
    before, after = (escape(" ".join(words)) for words in (labels, [labels[i] for i in order.tolist()]))
    st.markdown(chapter.words("shuffled", before=before, after=after))
    return order


def insight_figure(changes: np.ndarray, words: list[str], limit: float, labels: Labels) -> go.Figure:
    """Return a bar for each word, in the shuffled order."""
    figure = traces.bars(
        go.Figure(), np.arange(len(words), dtype=np.float32), changes, ACCENT, hover="%{y:.2g}", meta="change"
    )
    texts = [html.escape(word) for word in words]
    ticks = {"tickmode": "array", "tickvals": list(range(len(words))), "ticktext": texts}
    high = {"range": [0, 1.1 * limit]}
    return lay_out(figure, "", labels["change"], height=300, xaxis=ticks, yaxis=high, meta=named_parts(x="word"))


_DISTANCES = (7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91)


def sources(chapter: Chapter) -> None:
    """Offsets, slopes and buckets computed; what papers measured, as they printed it."""
    offsets = next(iter(RelativePositionEmbedding1d(4, 8).parameters()))
    buckets = t5_relative_position_bucket(-torch.tensor(_DISTANCES))
    chapter.sources(
        {
            "offsets": len(offsets),
            "shared-heads": len(next(iter(RelativePositionEmbedding1d(4, 8, num_heads=2).parameters()))),
            "grid": None,
            "slopes": alibi_slopes(8).tolist(),
            "slopes-16": alibi_slopes(16)[[0, -1]].tolist(),
            "buckets": buckets.tolist(),
            "clipping": None,
            "rotary": None,
            "rank": None,
            "longer": None,
            "small-tasks": None,
        }
    )
