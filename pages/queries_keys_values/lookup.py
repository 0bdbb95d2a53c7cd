"""Lookups in the table of names: soft, exact, approximate and top-k."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st
import torch

from pages.queries_keys_values import figures, parts
from pages.queries_keys_values.figures import identities_figure
from pages.queries_keys_values.parts import DISTANCES, MAX_LETTERS, TEMPERATURES, Database, QueryInputs
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.queries_keys_values import (
    approximate_lookup,
    copy_error,
    exact_lookup,
    first_weights,
    identity_error,
    identity_lookup,
    soft_lookup,
    top_lookup,
    undivided,
    uniform_error,
    without_exponential,
)

SIZES = (10, 20)
_COLD = 0.05  # a temperature at which ten orthogonal keys give nearly the identity matrix
_BROKEN = {"undivided": undivided, "no-exp": without_exponential}
MISSPELLED = {"Lipten": "Lipton", "li": "Li"}  # queries to try, and the keys that should still be found


def weights_and_claims(
    chapter: Chapter, database: Database, question: QueryInputs, hide_answer: bool, broken: str
) -> None:
    """Draw the weights of the reader's query, and claims about them, by a formula that may be broken."""
    weigh = _BROKEN.get(broken, soft_lookup)
    pairs = database.pairs
    if broken == "twins":
        key, value = pairs[int(weights(database, question).argmax())]
        pairs.append((key.swapcase(), value))
    keys = [key for key, _ in pairs]
    given = weigh([question.query], keys, question.temperature)[0]
    best = int(given.argmax())
    chapter.figure(
        "weights",
        figure(chapter, None if hide_answer else given.numpy(), pairs),
        hide_answer=hide_answer,
        query=escape(question.query),
        temperature=f"{question.temperature:g}",
        key=escape(keys[best]),
        largest=f"{float(given[best]):.3g}",
    )
    coldest, hottest = TEMPERATURES[0], TEMPERATURES[-1]
    with chapter.claim_row("lookup-claims"):
        chapter.claim("sums", abs(float(given.sum()) - 1), 1e-12)
        chapter.claim("identity", identity_error(keys, coldest, weigh), 1e-6, temperature=f"{coldest:g}")
        average = uniform_error(question.query, keys, hottest, weigh)
        chapter.claim("average", average, 0.01, temperature=f"{hottest:g}")


def figure(chapter: Chapter, given: np.ndarray | None, pairs: Sequence[tuple[str, str]]) -> go.Figure:
    """Return the bars of the weights, without them if there are none."""
    return figures.weights_figure(given, pairs, chapter.words.group("figure"))


def kinds_of_weights(chapter: Chapter, given: torch.Tensor | None) -> None:
    """Say where the sum of values can be, and check it where values are the rows of the identity matrix."""
    chapter.text("plane")
    if given is not None:
        with chapter.claim_row("plane-claims"):
            chapter.claim("copies", copy_error(given), 0.0)


def other_lookups(chapter: Chapter, database: Database, question: QueryInputs, hide_answer: bool) -> None:
    """Draw exact, approximate and top-k lookup, and an exercise on them."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        max_edits = int(chapter.controls.slider("edits", 0, 6, 1))
        compare = chapter.controls.choice("compare", tuple(DISTANCES), "beginning")
        top = int(chapter.controls.slider("top", 1, 6, 2))
    exact, approximate, best = st.columns(3, gap="medium")
    with exact:
        _exact(chapter, database, question)
    with approximate:
        _approximate(chapter, database, question, max_edits, compare)
    with best:
        chapter.text("top", most=top)
        for place, score in top_lookup(question.query, database.keys, top):
            _answer(chapter, "top.answer", database, place, score=f"{score:.2f}")
    if not hide_answer:
        first = first_weights(MISSPELLED, database.keys, question.temperature)
        chapter.finding("misspelled", first is not None, lipton=_weight(first, 0), li=_weight(first, 1))
    cards = parts.cards()
    left, right = st.columns(2, gap="large")
    with left:
        chapter.source_card("exact", cards["exact"])
    with right:
        chapter.source_card("approximate", cards["approximate"])
    chapter.exercise("approximate")


def _exact(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    chapter.text("exact")
    places = exact_lookup(question.query, database.keys)
    if not places:
        chapter.text("exact.none", query=escape(question.query))
    for place in places:
        _answer(chapter, "answer", database, place)
    if len(places) > 1:
        chapter.text("exact.several", count=len(places))


def _approximate(chapter: Chapter, database: Database, question: QueryInputs, max_edits: int, compare: str) -> None:
    chapter.text("approximate", most=max_edits)
    found = approximate_lookup(question.query, database.keys, max_edits, DISTANCES[compare])
    if not found:
        chapter.text("approximate.none", most=max_edits)
    for one in found:
        _answer(chapter, "approximate.answer", database, one.place, edits=one.edits)


def _answer(chapter: Chapter, name: str, database: Database, place: int, **values: object) -> None:
    key, value = escape(database.keys[place]), _shown(chapter, database.values[place])
    chapter.text(name, key=key, value=value, **values)


def _weight(weights: list[float] | None, place: int) -> str:
    return f"{weights[place]:.3f}" if weights else ""


def _shown(chapter: Chapter, value: str) -> str:
    return escape(value[:MAX_LETTERS]) if value else chapter.words("no-value")


def identities(chapter: Chapter) -> None:
    """Draw the weights of orthogonal keys on all keys: nearly the identity matrix."""
    orthogonal = [identity_lookup(size, _COLD).numpy() for size in SIZES]
    chapter.figure(
        "identities",
        partial(identities_figure, orthogonal, chapter.words.group("figure")),
        height=330,
        temperature=f"{_COLD:g}",
        least=f"{min(float(each.diagonal().min()) for each in orthogonal):.6f}",
    )


def weights(database: Database, question: QueryInputs) -> torch.Tensor:
    """The weights of the reader's query on every key."""
    return soft_lookup([question.query], database.keys, question.temperature)[0]
