"""One table of names looked up in three ways: exactly, approximately and softly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st
import torch

from pages.queries_keys_values import lookup_figures as figures
from pages.queries_keys_values.names import DISTANCES, MOST_LETTERS, TEMPERATURES, Database, QueryInputs
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.queries_keys_values.edit_distance import edit_table
from viz_core.lessons.queries_keys_values.lookup import (
    approximate_lookup,
    exact_lookup,
    first_weights,
    identity_error,
    soft_lookup,
    top_lookup,
    undivided,
    uniform_error,
)

MISSPELLED = {"Lipten": "Lipton", "li": "Li"}  # queries to try, and the keys that should still be found


def answers(chapter: Chapter, database: Database, question: QueryInputs, hide_answer: bool) -> None:
    """Draw the three answers, the soft one first; without its weights while the answer is hidden."""
    _soft(chapter, database, question, hide_answer)
    exact, approximate = st.columns(2, gap="large")
    with exact:
        _exact(chapter, database, question)
    with approximate:
        _approximate(chapter, database, question)


def _exact(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    chapter.text("exact")
    places = exact_lookup(question.query, database.keys)
    if not places:
        chapter.text("exact.none", query=escape(question.query))
    for place in places:
        _answer(chapter, "answer", database, place)
    if len(places) > 1:
        chapter.text("exact.several", count=len(places))


def _approximate(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    chapter.text("approximate", most=question.most_edits)
    found = approximate_lookup(question.query, database.keys, question.most_edits, DISTANCES[question.compare])
    if not found:
        chapter.text("approximate.none", most=question.most_edits)
    for one in found:
        _answer(chapter, "approximate.answer", database, one.place, edits=one.edits)
    chapter.text("top", most=question.top)
    for place, score in top_lookup(question.query, database.keys, question.top):
        _answer(chapter, "top.answer", database, place, score=f"{score:.2f}")


def _answer(chapter: Chapter, name: str, database: Database, place: int, **values: object) -> None:
    key, value = escape(database.keys[place]), _shown(chapter, database.values[place])
    chapter.text(name, key=key, value=value, **values)


def _soft(chapter: Chapter, database: Database, question: QueryInputs, hide_answer: bool) -> None:
    chapter.text("soft")
    given = weights(database, question)
    best = int(given.argmax())
    shown = None if hide_answer else given.numpy()
    chapter.figure(
        "weights",
        figures.weights_figure(shown, database.pairs, chapter.words.group("figure")),
        hide_answer=hide_answer,
        query=escape(question.query),
        temperature=f"{question.temperature:g}",
        key=escape(database.keys[best]),
        value=_shown(chapter, database.values[best]),
        largest=f"{float(given[best]):.3f}",
        smallest=f"{float(given.min()):.3f}",
    )
    first = first_weights(MISSPELLED, database.keys, question.temperature)
    chapter.finding("misspelled", first is not None, lipton=_weight(first, 0), li=_weight(first, 1))


def _weight(weights: list[float] | None, place: int) -> str:
    return f"{weights[place]:.3f}" if weights else ""


def _shown(chapter: Chapter, value: str) -> str:
    return escape(value[:MOST_LETTERS]) if value else chapter.words("no-value")


def edits(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """The table of edits between the query and one key, the nearest that is not the query itself unless chosen."""
    keys = list(dict.fromkeys(database.keys))
    nearest = approximate_lookup(question.query, keys, 2 * MOST_LETTERS, DISTANCES[question.compare])
    other = [found.place for found in nearest if keys[found.place] != question.query]
    key = chapter.controls.select("against", keys, keys[other[0] if other else 0])
    table = edit_table(question.query, key)
    last = table[-1]
    end = last.index(min(last)) if question.compare == "beginning" else len(key)
    chapter.figure(
        "edits",
        partial(figures.edits_figure, question.query, key, end, chapter.words.group("figure")),
        query=escape(question.query),
        key=escape(key),
        whole=last[-1],
        beginning=min(last),
        prefix=escape(key[: last.index(min(last))]) or "∅",
    )


def identity(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Draw the weights of every key on all keys: the identity where each matches only itself."""
    weights = soft_lookup(database.keys, database.keys, question.temperature)
    chapter.figure(
        "identity",
        partial(figures.all_keys_figure, weights.numpy(), database.keys, chapter.words.group("figure")),
        temperature=f"{question.temperature:g}",
        difference=f"{identity_error(database.keys, question.temperature):.3f}",
        least=f"{float(weights.diagonal().min()):.3f}",
    )


def lookup_claims(chapter: Chapter, database: Database, question: QueryInputs, broken: str) -> None:
    """Claims about any lookup in this table, some broken on request."""
    coldest, hottest = TEMPERATURES[0], TEMPERATURES[-1]
    given = (undivided if broken == "undivided" else _weights)(question.query, database.keys, question.temperature)
    chapter.claim("sums", abs(float(given.sum()) - 1), 1e-12)
    keys = (*database.keys, database.keys[0].swapcase()) if broken == "twins" else database.keys
    chapter.claim("identity", identity_error(keys, coldest), 1e-6, temperature=f"{coldest:g}")
    warm = coldest if broken == "cold" else hottest
    chapter.claim("average", uniform_error(question.query, database.keys, warm), 0.01, temperature=f"{warm:g}")


def weights(database: Database, question: QueryInputs) -> torch.Tensor:
    """The weights of the reader's query on every key."""
    return _weights(question.query, database.keys, question.temperature)


def _weights(query: str, keys: Sequence[str], temperature: float) -> torch.Tensor:
    return soft_lookup([query], keys, temperature)[0]
