"""The book's material on lookups: its two answers, its diagram, the softmax, and why a lookup is soft."""

from __future__ import annotations

from functools import partial

from pages.queries_keys_values import book_figures as figures
from pages.queries_keys_values.names import Database, QueryInputs
from ui.blocks.diagram import attention_diagram, attention_height
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.numbers import separators
from viz_core.lessons.queries_keys_values.hard_and_soft import GAPS, smallest_gradient, two_keys
from viz_core.lessons.queries_keys_values.lookup import (
    BOOK_DATABASE,
    approximate_lookup,
    beginning_distance,
    exact_lookup,
    soft_lookup,
)

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
