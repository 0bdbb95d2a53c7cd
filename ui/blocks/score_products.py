"""The score of a pair, dimension by dimension, for every chapter that shows the maps of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from serving.requests.request import Request
from serving.requests.score_products import keeps_queries_and_keys, products_of_pair
from ui.blocks.heads_off import open_head
from ui.blocks.score_products_figure import products_figure
from ui.chapter.chapter import Chapter
from ui.chapter.claims import Claim
from ui.compute.models import evaluate
from ui.text.head_names import head_name, head_title
from ui.text.markdown import after_label, escape, join_sentences, unescape
from ui.text.words import Words, load_words
from ui.widgets.chart import draw_chart
from ui.widgets.controls import Controls
from ui.widgets.map_cell import Cell
from viz_core.maps.score_products import ScoreProducts
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_ROUNDING = 1e-5  # relative to the sum of the absolute terms


def open_pair(groups: Sequence[MapGroup], cell: Cell) -> None:
    """Choose the clicked pair, in a callback before the page reruns."""
    controls = Controls(load_words("score-products"))
    group = next(group for group in groups if group.id == cell.group)
    st.session_state[controls.key("query")] = _numbered(group.query_tokens)[cell.query]
    st.session_state[controls.key("key")] = _numbered(group.key_tokens)[cell.key]


def score_products(
    chapter: Chapter, request: Request[Any, Any], groups: Sequence[MapGroup], view: ViewState, *, rotated: bool = False
) -> None:
    """Draw the terms of query times key for one pair of the open head, chosen here or clicked in the map.

    Args:
        groups: the maps of the request that the view shows.
        rotated: whether positions rotate queries and keys before their product.
    """
    words = load_words("score-products")
    site, head = open_head(groups, view)
    if not evaluate(request, keeps_queries_and_keys, site):
        st.info(words("whole-maps"), icon=":material/info:")
        return
    controls = Controls(words)
    group = next(group for group in groups if group.id == view.group)
    queries, keys = _numbered(group.query_tokens), _numbered(group.key_tokens)
    st.markdown(words("about", head=head_title(head_name(site, head))))
    if rotated:
        st.caption(words("rotated"))
    left, right = st.columns(2)
    named_queries, named_keys = _names(group, group.query_tokens), _names(group, group.key_tokens)
    shown = dict(zip((*keys, *queries), _numbered(named_keys) + _numbered(named_queries), strict=True))
    middle = len(queries) // 2  # and the key before it, which no mask excludes
    with left:
        query = queries.index(str(controls.select("query", queries, queries[middle], shown.__getitem__)))
    with right:
        key = keys.index(
            str(controls.select("key", keys, keys[min(max(0, middle - 1), len(keys) - 1)], shown.__getitem__))
        )
    by_size = controls.choice("order", ("in-order", "by-size"), "in-order") == "by-size"

    def draw() -> None:
        products = evaluate(request, products_of_pair, site, head, query, key, group.row)
        tokens: dict[str, str] = {"query": escape(named_queries[query]), "key": escape(named_keys[key])}
        _draw(chapter, words, products, by_size, tokens)

    chapter.lazy("score-products", draw, 560)


def _draw(chapter: Chapter, words: Words, score: ScoreProducts, by_size: bool, tokens: dict[str, str]) -> None:
    """Draw the figure, its guidance, and the claim that the terms add up to the score."""
    largest = int(abs(score.products).argmax())
    numbers = {
        "dimensions": len(score.products),
        "most": _signed(score.products[largest]),
        "dimension": largest + 1,
        "product": _signed(score.products.sum()),
        "score": _signed(score.score),
        "weight": f"{score.weight:.3f}",
        "up": int((score.products > 0).sum()),
        "down": int((score.products < 0).sum()),
        "half": score.half,
        "scale": f"{score.scale:.4g}",
        "cap": _signed(score.cap),
        "bias": _signed(score.bias),
        **tokens,
    }
    figure = products_figure(score, words.group("figure"), by_size=by_size)
    draw_chart("figure-score-products", figure, unescape(words("alt", **numbers)), f"{chapter.words.stem}-{words.stem}")
    notes = [words("look", **numbers)]
    notes += [words("capped", **numbers)] if score.cap else []
    if score.hidden:
        notes.append(words("hidden"))
    else:
        notes += [words("biased", **numbers)] if score.bias else []
        notes.append(words("ends", **numbers))
    st.caption(after_label(chapter.common("look-for"), join_sentences(notes)))
    if not score.hidden:
        tolerance = _ROUNDING * max(1.0, float(abs(score.products).sum()) + abs(score.bias))
        with st.container(horizontal=True, key="claims-score-products"):
            Claim("claim-score-products", words("claim"), "off-by", score.residual, tolerance).draw(chapter.common)


def _names(group: MapGroup, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return tokens, patches of a picture by row and column."""
    if group.seen is None or len(tokens) != group.seen.num_tokens:
        return tokens
    words, special, columns = load_words("attention-view"), group.seen.num_special, group.seen.grid[1]
    places = (divmod(patch, columns) for patch in range(len(tokens) - special))
    return tokens[:special] + tuple(words("patch", row=row + 1, column=column + 1) for row, column in places)


def _numbered(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return tokens with their positions from 1, which makes them unique."""
    return tuple(f"{position} {token}" for position, token in enumerate(tokens, start=1))


def _signed(number: float) -> str:
    return f"{number:+.3f}"
