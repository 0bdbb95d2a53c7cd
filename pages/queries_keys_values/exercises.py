"""Experiments for the book's exercises, shown after the reader has answered."""

from __future__ import annotations

from functools import partial

from pages.queries_keys_values.names import Database, QueryInputs
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.queries_keys_values.exercises import (
    channel_gates,
    channel_scores,
    count_matching_limits,
    query_jacobian,
    ranks_while_learning,
    taken_from_others,
    two_pictures,
    weighted_covariance,
)
from viz_core.lessons.queries_keys_values.lookup import embed_words

_LIMITS = range(7)  # edits


def section(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Draw three of the book's exercises."""
    chapter.exercise("search", reveal=partial(search, chapter, database, question))
    chapter.exercise("covariance", reveal=partial(covariance, chapter, database, question))
    chapter.exercise("gates", reveal=partial(gates, chapter))


def approximate(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Count the edit limits at which a kernel weighs the keys as the approximate lookup does."""
    values = count_matching_limits(question.query, database.keys, _LIMITS)
    query = escape(question.query)
    chapter.text("measured.approximate", query=query, last=_LIMITS[-1], count=len(_LIMITS), **values)


def covariance(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Compare the Jacobian of the reader's lookup with the weighted covariance."""
    vectors = embed_words([question.query, *database.keys])
    arguments = vectors[0], vectors[1:], question.temperature
    slope = query_jacobian(*arguments)
    chapter.text(
        "measured.covariance",
        query=escape(question.query),
        temperature=f"{question.temperature:g}",
        slope=f"{float(slope.norm()):.4f}",
        off=f"{float((slope - weighted_covariance(*arguments) / question.temperature).norm()):.1e}",
    )


def search(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Show the rank of the worst-matching key rise as clicks on it train the query."""
    vectors = embed_words([question.query, *database.keys])
    query, keys = vectors[0], vectors[1:]
    clicked = int((keys @ query).argmin())
    ranks = ranks_while_learning(query, keys, clicked, question.temperature)
    chapter.text(
        "measured.search",
        query=escape(question.query),
        key=escape(database.keys[clicked]),
        before=ranks[0],
        count=len(keys),
        after=ranks[-1],
        steps=len(ranks) - 1,
    )


def gates(chapter: Chapter) -> None:
    """Compare the channel gates of two pictures, and the effect of one channel on the others."""
    first, second = (channel_scores(picture) for picture in two_pictures())
    chapter.text(
        "measured.gates",
        count=len(first),
        first=f"{float(channel_gates(first).sum()):.2f}",
        second=f"{float(channel_gates(second).sum()):.2f}",
        gates=f"{taken_from_others(first, by_softmax=False):.2f}",
        softmax=f"{taken_from_others(first, by_softmax=True):.2f}",
    )
