"""The lookup half of the chapter on queries, keys and values: one table of names, three ways to ask it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st
import torch

from pages.queries_keys_values import lookup_figures as figures
from pages.queries_keys_values.rows import edited_table
from ui.chapter import Chapter
from ui.controls import escape
from viz_core.lessons.queries_keys_values.edit_distance import beginning_distance, edit_distance, edit_table
from viz_core.lessons.queries_keys_values.lookup import (
    BOOK_DATABASE,
    approximate_lookup,
    exact_lookup,
    identity_error,
    soft_lookup,
    uniform_error,
)

MOST_ROWS = 24
MOST_LETTERS = 60
TEMPERATURES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
_DISTANCES = {"beginning": beginning_distance, "whole": edit_distance}


@dataclass(frozen=True)
class Database:
    """The rows that can be asked: those with a key."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.keys, self.values, strict=True))


@dataclass(frozen=True)
class Question:
    """What the reader asks of the table, and how."""

    query: str
    most_edits: int
    compare: str
    temperature: float


def ask_table(chapter: Chapter) -> Database:
    """The editable table, and a sentence for every row that cannot be asked."""
    label = chapter.words.label("names")
    columns = {name: chapter.words.label(name) for name in ("key", "value")}
    rows = edited_table(chapter.controls.key("names"), label, columns, BOOK_DATABASE, MOST_ROWS)
    rows = [[cell.strip() for cell in row] for row in rows]
    keyless = [value for key, value in rows if not key]
    long = [key for key, _ in rows if len(key) > MOST_LETTERS]
    usable = [(key, value) for key, value in rows if 0 < len(key) <= MOST_LETTERS]
    counts = Counter(key for key, _ in usable[:MOST_ROWS])
    for value in keyless:
        _note(chapter, "problem.no-key", value=escape(value[:MOST_LETTERS]))
    for key in long:
        _note(chapter, "problem.long", key=escape(f"{key[:12]}…"), letters=len(key), most=MOST_LETTERS)
    for key in [key for key, count in counts.items() if count > 1]:
        _note(chapter, "problem.duplicate", key=escape(key), count=counts[key])
    if len(usable) > MOST_ROWS:
        _note(chapter, "problem.rows", most=MOST_ROWS, count=len(usable))
    kept = usable[:MOST_ROWS]
    return Database(tuple(key for key, _ in kept), tuple(value for _, value in kept))


def ask_question(chapter: Chapter) -> Question:
    """The query and how near is near enough."""
    controls = chapter.controls
    query = controls.text("query", "Li", placeholder=chapter.words("placeholder")).strip()
    left, right = st.columns(2)
    with left:
        most_edits = int(controls.slider("edits", 0, 6, 1))
        compare = controls.choice("compare", tuple(_DISTANCES), "beginning")
    with right:
        temperature = controls.stops("temperature", TEMPERATURES, 0.2)
        chapter.text("temperature")
    return Question(query, most_edits, compare, float(temperature))


def is_answerable(chapter: Chapter, database: Database, question: Question) -> bool:
    """Whether there is something to ask and someone to answer; a sentence says what is missing."""
    if not database.keys:
        st.info(chapter.words("problem.empty"), icon=":material/edit:")
    elif not question.query:
        st.info(chapter.words("problem.no-query"), icon=":material/edit:")
    elif len(question.query) > MOST_LETTERS:
        letters = len(question.query)
        st.warning(chapter.words("problem.long-query", letters=letters, most=MOST_LETTERS), icon=":material/edit:")
    else:
        return True
    return False


def answers(chapter: Chapter, database: Database, question: Question) -> go.Figure:
    """The three answers side by side; the figure is that of the soft one."""
    exact, approximate, soft = st.columns([3, 4, 6], gap="large")
    with exact:
        _exact(chapter, database, question)
    with approximate:
        _approximate(chapter, database, question)
    with soft:
        return _soft(chapter, database, question)


def edits(chapter: Chapter, database: Database, question: Question) -> None:
    """The table of edits between the query and one key, the nearest that is not the query itself unless chosen."""
    keys = list(dict.fromkeys(database.keys))
    near = approximate_lookup(question.query, keys, 2 * MOST_LETTERS, _DISTANCES[question.compare])
    other = [found.place for found in near if keys[found.place] != question.query]
    key = chapter.controls.select("against", keys, keys[other[0] if other else 0])
    table = edit_table(question.query, key)
    last = table[-1]
    end = last.index(min(last)) if question.compare == "beginning" else len(key)
    chapter.figure(
        "edits",
        figures.edits_figure(question.query, key, end, chapter.words.group("figure")),
        query=escape(question.query),
        key=escape(key),
        whole=last[-1],
        beginning=min(last),
        prefix=escape(key[: last.index(min(last))]) or "∅",
    )


def identity(chapter: Chapter, database: Database, question: Question) -> None:
    """Every key asked of all keys: the identity where each finds itself alone."""
    weights = soft_lookup(database.keys, database.keys, question.temperature)
    chapter.figure(
        "identity",
        figures.all_keys_figure(weights.numpy(), database.keys, chapter.words.group("figure")),
        temperature=f"{question.temperature:g}",
        difference=f"{identity_error(database.keys, question.temperature):.3f}",
        least=f"{float(weights.diagonal().min()):.3f}",
    )


def lookup_claims(chapter: Chapter, database: Database, question: Question) -> None:
    """What must be true of any lookup in this table."""
    coldest, hottest = TEMPERATURES[0], TEMPERATURES[-1]
    weights = soft_lookup([question.query], database.keys, question.temperature)
    chapter.claim("sums", float((weights.sum(dim=-1) - 1).abs().max()), 1e-12)
    chapter.claim("identity", identity_error(database.keys, coldest), 1e-6, temperature=f"{coldest:g}")
    chapter.claim("average", uniform_error(question.query, database.keys, hottest), 0.01, temperature=f"{hottest:g}")


def weights(database: Database, question: Question) -> torch.Tensor:
    """Of the reader's query on every key."""
    return soft_lookup([question.query], database.keys, question.temperature)[0]


def _exact(chapter: Chapter, database: Database, question: Question) -> None:
    chapter.text("exact")
    places = exact_lookup(question.query, database.keys)
    if not places:
        chapter.text("exact.none", query=escape(question.query))
    for place in places:
        _answer(chapter, "answer", database, place)
    if len(places) > 1:
        chapter.text("exact.several", count=len(places))


def _approximate(chapter: Chapter, database: Database, question: Question) -> None:
    chapter.text("approximate", most=question.most_edits)
    found = approximate_lookup(question.query, database.keys, question.most_edits, _DISTANCES[question.compare])
    if not found:
        chapter.text("approximate.none", most=question.most_edits)
    for one in found:
        _answer(chapter, "approximate.answer", database, one.place, edits=one.edits)


def _answer(chapter: Chapter, name: str, database: Database, place: int, **values: object) -> None:
    key, value = escape(database.keys[place]), _shown(chapter, database.values[place])
    chapter.text(name, key=key, value=value, **values)


def _soft(chapter: Chapter, database: Database, question: Question) -> go.Figure:
    chapter.text("soft")
    given = weights(database, question)
    best = int(given.argmax())
    figure = figures.weights_figure(given.numpy(), database.pairs, chapter.words.group("figure"))
    chapter.figure(
        "weights",
        figure,
        query=escape(question.query),
        temperature=f"{question.temperature:g}",
        key=escape(database.keys[best]),
        value=_shown(chapter, database.values[best]),
        largest=f"{float(given[best]):.3f}",
        smallest=f"{float(given.min()):.3f}",
    )
    return figure


def _shown(chapter: Chapter, value: str) -> str:
    return escape(value[:MOST_LETTERS]) if value else chapter.words("no-value")


def _note(chapter: Chapter, name: str, **values: object) -> None:
    st.caption(f":material/info: {chapter.words(name, **values)}")
