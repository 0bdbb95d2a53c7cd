"""The score of a pair, dimension by dimension, for every chapter that shows the maps of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float, Int

from serving.requests.request import RunRequest
from ui.blocks.heads_off import open_head
from ui.chapter.chapter import Chapter
from ui.chapter.claims import Claim
from ui.compute.models import evaluate
from ui.text.head_names import head_name, head_place, head_title, layer_place
from ui.text.markdown import escape, join_sentences, unescape
from ui.text.translations import explain
from ui.text.words import Words, load_words
from ui.widgets import traces
from ui.widgets.chart import draw_chart
from ui.widgets.controls import Controls
from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, Labels, lay_out, named_bars
from ui.widgets.view_link import Cell
from viz_core.lab.circuits import keeps_queries_and_keys, products_of_pair, score_by_parts
from viz_core.maps.score_products import ScoreProducts
from viz_core.runtime.refusal import RefusalError
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_GREY = "#7f7f7f"
_MAX_NAMED = 16  # dimensions whose numbers are written under the bars


def products_figure(found: ScoreProducts, labels: Labels, *, by_size: bool = False) -> go.Figure:
    """Query, key and products by dimension, then what else is added; the line is the sum so far.

    Args:
        labels: names "query", "key", "product", "sum", "cap", "bias" and "dimension".
        by_size: the largest products first, whatever their sign; else in the order of the dimensions.
    """
    order = np.argsort(-np.abs(found.products), kind="stable") if by_size else np.arange(len(found.products))
    names = [str(dimension + 1) for dimension in order]
    terms = {labels["cap"]: found.cap, labels["bias"]: found.bias}
    more = {name: term for name, term in terms.items() if term and not found.hidden}
    heights = np.concatenate((found.products[order], np.array(list(more.values()))))
    names += more
    x = np.arange(len(heights), dtype=np.int32)
    colours = np.where(heights >= 0, ACCENT, CATEGORIES[4])
    colours[len(order) :] = _GREY  # what is no product
    named = [f"{labels['dimension']} {name}" if i < len(order) else name for i, name in enumerate(names)]
    figure, name = go.Figure(), labels["product"]
    traces.bars(figure, x, heights, colours.tolist(), name, customdata=named, hover="%{customdata}: %{y:+.4f}")
    hover = f"{labels['sum']}: %{{y:+.4f}}"
    traces.line(figure, x, heights.cumsum(), ACCENT, labels["sum"], width=2, shape="hvh", hover=hover)
    _add_row(figure, found.key, order, "y2", KEYS, labels["key"])
    _add_row(figure, found.query, order, "y3", QUERIES, labels["query"])
    row = {"showticklabels": False, "showgrid": False, "zeroline": False, "fixedrange": True}
    shown = len(order) <= _MAX_NAMED
    places = list(range(0 if shown else len(order), len(names)))
    return lay_out(
        figure,
        labels["dimension"],
        labels["product"],
        height=430,
        showlegend=False,
        xaxis={"tickmode": "array", "tickvals": places, "ticktext": [names[i] for i in places], "showgrid": False},
        yaxis={"domain": [0, 0.74], "zeroline": True},
        yaxis2={**row, "domain": [0.79, 0.87], "title": {"text": labels["key"]}},
        yaxis3={**row, "domain": [0.91, 0.99], "title": {"text": labels["query"]}},
    )


def parts_figure(terms: Sequence[tuple[str, float]], score: float, labels: Labels) -> go.Figure:
    """Terms of a score as horizontal bars, each beginning where the one above ends; the last bar is the score.

    Args:
        terms: name and value of each.
        labels: names "score" and "sum".
    """
    values = np.array([value for _, value in terms])
    starts = np.concatenate(([0.0], values.cumsum()[:-1], [0.0]))
    heights = np.concatenate((values, [score]))
    names = [*(name for name, _ in terms), labels["score"]]
    axis = named_bars(names)
    colours = [*(ACCENT if value >= 0 else CATEGORIES[4] for value in values), _GREY]
    figure = traces.bars(
        go.Figure(),
        heights,
        axis["tickvals"],
        colours,
        base=starts.astype(np.float32),
        across=True,
        beside=[f"{height:+.2f}" for height in heights],
        hover="%{text}",
    )
    ends = np.concatenate((starts, starts + heights))
    margin = 0.2 * max(float(np.ptp(ends)), 1e-6)
    room = {"range": [float(ends.min()) - margin, float(ends.max()) + margin]}
    return lay_out(figure, labels["sum"], "", height=110 + 26 * len(names), xaxis=room, yaxis=axis)


def _add_row(
    figure: go.Figure, values: Float[np.ndarray, " d"], order: Int[np.ndarray, " d"], axis: str, colour: str, name: str
) -> None:
    """A vector as one row: its colour where it is positive, grey where it is negative, nothing at 0."""
    limit = float(np.abs(values).max()) or 1.0
    traces.cells(
        figure,
        values[order][None],
        x=np.arange(len(order), dtype=np.int32),
        yaxis=axis,
        zmin=-limit,
        zmax=limit,
        colorscale=[[0, _GREY], [0.5, "rgba(127,127,127,0)"], [1, colour]],
        customdata=(order + 1)[None],
        hover=f"{name} %{{customdata}}: %{{z:+.4f}}",
    )


_PARTS = 12  # drawn by themselves
_ROUNDING = 1e-5  # relative to the sum of the absolute terms


def open_pair(groups: Sequence[MapGroup], cell: Cell) -> None:
    """Choose the clicked pair, in a callback before the page reruns."""
    controls = Controls(load_words("score-products"))
    group = next(group for group in groups if group.id == cell.group)
    st.session_state[controls.key("query")] = _numbered(group.query_tokens)[cell.query]
    st.session_state[controls.key("key")] = _numbered(group.key_tokens)[cell.key]


def score_products(
    chapter: Chapter,
    request: RunRequest[Any, Any],
    groups: Sequence[MapGroup],
    view: ViewState,
    *,
    rotated: bool = False,
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
    if controls.toggle("why"):
        _draw_parts(chapter, controls, request, (site, head, query, key, group.row))


def _draw_parts(
    chapter: Chapter, controls: Controls, request: RunRequest[Any, Any], pair: tuple[str, int, int, int, int]
) -> None:
    """Draw the score by what was written into the residual stream of the key, or of the query."""
    words = controls.words
    side = controls.choice("side", ("key", "query"), "key")
    try:
        hidden = evaluate(request, products_of_pair, *pair).hidden
        found = None if hidden else evaluate(request, score_by_parts, *pair, getattr(request, "off", ()))
    except ValueError as error:
        st.info(explain(error) if isinstance(error, RefusalError) else words("no-parts"), icon=":material/info:")
        return
    if found is None:
        st.info(words("hidden"), icon=":material/info:")
        return
    names, sums = found.key_parts, found.terms.sum(dim=0)
    if side == "query":
        names, sums = found.query_parts, found.terms.sum(dim=1)
    ranked = sorted(zip(map(_part_name, names), sums.tolist(), strict=True), key=lambda term: -abs(term[1]))
    terms, rest = ranked[:_PARTS], ranked[_PARTS:]
    if rest:
        terms.append((words("part.rest", count=len(rest)), sum(value for _, value in rest)))
    terms += [(words(f"figure.{name}"), value) for name, value in (("cap", found.cap), ("bias", found.bias)) if value]
    figure = parts_figure(terms, found.score, words.group("figure"))
    values = {"part": escape(terms[0][0]), "most": _signed(terms[0][1]), "score": _signed(found.score)}
    listed = "; ".join(f"{name}: {_signed(value)}" for name, value in terms)
    draw_chart("figure-score-parts", figure, unescape(words("alt.parts", terms=listed, **values)), "score-parts")
    st.caption(join_sentences([words(f"look.parts-{side}"), words("look.parts", **values)]))
    tolerance = _ROUNDING * max(1.0, float(found.terms.abs().sum()) + abs(found.bias))
    with st.container(horizontal=True, key="claims-score-parts"):
        residual = abs(sum(value for _, value in terms) - found.score)
        Claim("claim-score-parts", words("claim.parts"), "off-by", residual, tolerance).draw(chapter.common)


def _part_name(part: tuple[str, int | None, int | None]) -> str:
    """Return a part of the stream in words: "layer 2, head 3", "layer 2, feed-forward", "token"."""
    name, layer, head = part
    words = load_words("score-products")
    if layer is None:
        return words(f"part.{name}")
    if head is None or name == "cross":
        place = layer_place(layer + 1) if head is None else head_place(layer + 1, head + 1)
        return words("part.in-layer", place=place, part=words(f"part.{name}"))
    return head_place(layer + 1, head + 1)


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
    st.caption(join_sentences(notes))
    if not score.hidden:
        tolerance = _ROUNDING * max(1.0, float(abs(score.products).sum()) + abs(score.bias))
        with st.container(horizontal=True, key="claims-score-products"):
            Claim("claim-score-products", words("claim"), "off-by", score.residual, tolerance).draw(chapter.common)


def _names(group: MapGroup, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return tokens, patches of a picture by row and column."""
    if group.image is None or len(tokens) != group.image.num_tokens:
        return tokens
    words, special, columns = load_words("attention-view"), group.image.num_special, group.image.grid[1]
    places = (divmod(patch, columns) for patch in range(len(tokens) - special))
    return tokens[:special] + tuple(words("patch", row=row + 1, column=column + 1) for row, column in places)


def _numbered(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return tokens with their positions from 1, which makes them unique."""
    return tuple(f"{position} {token}" for position, token in enumerate(tokens, start=1))


def _signed(number: float) -> str:
    return f"{number:+.3f}"
