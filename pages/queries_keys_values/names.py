"""Inputs of the chapter: the table of names and the query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import streamlit as st

from pages.queries_keys_values.rows import edited_table
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.queries_keys_values.lookup import (
    BOOK_DATABASE,
    beginning_distance,
    edit_distance,
)

MOST_ROWS = 24
MOST_LETTERS = 60
TEMPERATURES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
DISTANCES = {"beginning": beginning_distance, "whole": edit_distance}


@dataclass(frozen=True)
class Database:
    """The rows that can be looked up: those with a key."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.keys, self.values, strict=True))


@dataclass(frozen=True)
class QueryInputs:
    """The query and the temperature of the softmax."""

    query: str
    temperature: float


def table_input(chapter: Chapter) -> Database:
    """Read the editable table, with a warning for every row without a usable key."""
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
    used = usable[:MOST_ROWS]
    return Database(tuple(key for key, _ in used), tuple(value for _, value in used))


def query_input(chapter: Chapter) -> QueryInputs:
    """Read the query and the temperature."""
    query = chapter.controls.text("query", "Li", placeholder=chapter.words("placeholder")).strip()
    return QueryInputs(query, float(chapter.controls.select_slider("temperature", TEMPERATURES, 0.2)))


def is_answerable(chapter: Chapter, database: Database, question: QueryInputs) -> bool:
    """Whether there is a query and a key; a message says what is missing."""
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


def is_the_books(database: Database) -> bool:
    """Whether the names are still those of the book."""
    return database.keys == tuple(key for key, _ in BOOK_DATABASE)


def _note(chapter: Chapter, name: str, **values: object) -> None:
    st.caption(f":material/info: {chapter.words(name, **values)}")
