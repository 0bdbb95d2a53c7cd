"""Parts of the page: the editable database, the book's material, exercises and predictions."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st
from PIL import Image

from pages.queries_keys_values import figures
from pages.queries_keys_values.rows import edited_table
from ui.blocks.diagram import attention_diagram, attention_height
from ui.blocks.over_picture import weights_image
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.numbers import separators
from ui.text.words import load_words
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.lessons.queries_keys_values import (
    BOOK_DATABASE,
    GAPS,
    approximate_lookup,
    beginning_distance,
    edit_distance,
    exact_lookup,
    smallest_gradient,
    soft_lookup,
    two_keys,
)

MAX_ROWS = 24
MAX_LETTERS = 60
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


def table_input(chapter: Chapter, is_open: bool) -> Database:
    """Read the editable table, drawn if `is_open`, with a warning for every row without a usable key."""
    label = chapter.words.label("names")
    columns = {name: chapter.words.label(name) for name in ("key", "value")}
    rows = edited_table(chapter.controls.key("names"), label, columns, BOOK_DATABASE, MAX_ROWS, is_open)
    rows = [[cell.strip() for cell in row] for row in rows]
    keyless = [value for key, value in rows if not key]
    long = [key for key, _ in rows if len(key) > MAX_LETTERS]
    usable = [(key, value) for key, value in rows if 0 < len(key) <= MAX_LETTERS]
    counts = Counter(key for key, _ in usable[:MAX_ROWS])
    for value in keyless:
        _note(chapter, "problem.no-key", value=escape(value[:MAX_LETTERS]))
    for key in long:
        _note(chapter, "problem.long", key=escape(f"{key[:12]}…"), letters=len(key), most=MAX_LETTERS)
    for key in [key for key, count in counts.items() if count > 1]:
        _note(chapter, "problem.duplicate", key=escape(key), count=counts[key])
    if len(usable) > MAX_ROWS:
        _note(chapter, "problem.rows", most=MAX_ROWS, count=len(usable))
    used = usable[:MAX_ROWS]
    return Database(tuple(key for key, _ in used), tuple(value for _, value in used))


def query_input(chapter: Chapter) -> QueryInputs:
    """Read the query and the temperature."""
    query = chapter.controls.text("query", "Li", placeholder=chapter.words("placeholder")).strip()
    return QueryInputs(query, float(chapter.controls.select_slider("temperature", TEMPERATURES, 0.2)))


def answerable(chapter: Chapter, database: Database, question: QueryInputs) -> QueryInputs | None:
    """Return what can be looked up, or None without a key; a message says what is missing.

    In place of a query that is empty or too long it is the last one that was neither.
    """
    if not database.keys:
        st.info(chapter.words("problem.empty"), icon=":material/edit:")
        return None
    key, letters = chapter.controls.key("last-query"), len(question.query)
    if 0 < letters <= MAX_LETTERS:
        st.session_state[key] = question.query
        return question
    last = st.session_state.get(key, "Li")
    problem = chapter.words("problem.long-query" if letters else "problem.no-query", letters=letters, most=MAX_LETTERS)
    st.warning(f"{problem} {load_words('translation')('kept', text=escape(last))}", icon=":material/edit:")
    return replace(question, query=last)


def is_the_books(database: Database) -> bool:
    """Whether the names are still those of the book."""
    return database.keys == tuple(key for key, _ in BOOK_DATABASE)


def _note(chapter: Chapter, name: str, **values: object) -> None:
    st.caption(f":material/info: {chapter.words(name, **values)}")


_SHOWN = 6  # keys in the diagram


def cards() -> dict[str, str]:
    """What the book's two queries answer here: "Li" among all names, and where Li is not there."""
    keys, values = zip(*BOOK_DATABASE, strict=True)
    others = [(key, value) for key, value in BOOK_DATABASE if key != "Li"]
    nearest = approximate_lookup("Li", [key for key, _ in others], 0, beginning_distance)
    return {
        "exact": ", ".join(values[place] for place in exact_lookup("Li", keys)),
        "approximate": ", ".join(others[found.place][1] for found in nearest),
    }


def softmax(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Derive the softmax and show the whole computation as a diagram."""
    chapter.text("softmax")
    chapter.text("mathematics")
    diagram(chapter, database, question)


def diagram(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """The book's figure of attention, with the reader's query and the keys that it weighs most."""
    weights = soft_lookup([question.query], database.keys, question.temperature)[0]
    first = sorted(weights.argsort(descending=True)[:_SHOWN].tolist())
    keys, values = ([names[place] for place in first] for names in (database.keys, database.values))
    names = chapter.words.group("figure")
    shares = [float(weights[place]) for place in first]
    summary = [f"{escape(key)} {share:.2f}" for key, share in zip(keys, shares, strict=True)]
    chapter.figure(
        "diagram",
        lambda: attention_diagram(
            _cut(question.query),
            [*map(_cut, keys)],
            shares,
            [*map(_cut, values)],
            names["diagram-sum"],
            names,
            separators=separators(chapter.words.language),
        ),
        height=attention_height(len(first)),
        query=escape(question.query),
        summary=summary,
    )


def hard_and_soft(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """A hard lookup and a soft one, and their gradients."""
    chapter.text("hard")
    soft, hard, slope = two_keys(GAPS, question.temperature)
    names = chapter.words.group("figure")
    chapter.figure(
        "hard",
        partial(figures.gradient_figure, GAPS.numpy(), soft.numpy(), hard.numpy(), slope.numpy(), names),
        height=360,
        temperature=f"{question.temperature:g}",
        steepest=f"{float(slope.max()):.3g}",
    )
    if len(database.keys) == 1:
        chapter.text("one-key")
        return
    smallest = smallest_gradient(question.query, database.keys, question.temperature)
    values = {"smallest": f"{smallest:.1e}", "temperature": f"{question.temperature:g}"}
    chapter.finding("vanishes", smallest > 1e-16, **values)


def _cut(word: str) -> str:
    return word if len(word) <= 9 else f"{word[:8]}…"


def exercises(chapter: Chapter) -> None:
    """Draw three of the book's exercises."""
    for name in ("search", "covariance", "gates"):
        chapter.exercise(name)


_KEYS = tuple(key for key, _ in BOOK_DATABASE)
_QUERY, _COLD, _WARM = "Li", 0.2, 0.5
THE_ROW = OnFigure(
    Board("weights", names=_KEYS), "weights", {"query": _QUERY, "temperature": _WARM, "break": "nothing"}
)


def shade_the_row(chapter: Chapter) -> None:
    """Let the reader shade the weights of one query at a higher temperature."""
    chapter.draw_on_figure("warm", THE_ROW, warm_weights)


def warm_weights() -> Truth:
    """The correct weights, and three mistakes: one-hot, uniform, and at the page's own temperature."""
    warm, cold = (soft_lookup([_QUERY], _KEYS, temperature)[0].numpy() for temperature in (_WARM, _COLD))
    found = np.array([float(key == _QUERY) for key in _KEYS])
    return Truth(warm, {"one": found, "alike": np.full(len(_KEYS), 1 / len(_KEYS)), "cold": cold})


def gallery_picture() -> Image.Image:
    """The soft-lookup weights of every name of the book's table on all names."""
    keys = [key for key, _ in BOOK_DATABASE]
    return weights_image(soft_lookup(keys, keys, 0.3).float().numpy())
