"""Experiments for the book's exercises, shown after the reader has answered."""

from __future__ import annotations

from collections import Counter

from pages.queries_keys_values.names import DISTANCES, Database, QueryInputs
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.queries_keys_values.approximate_weights import edit_kernels, edit_weights
from viz_core.lessons.queries_keys_values.channel_gates import (
    channel_gates,
    channel_scores,
    taken_from_others,
    two_pictures,
)
from viz_core.lessons.queries_keys_values.lookup import approximate_lookup, embed_query_and_keys
from viz_core.lessons.queries_keys_values.query_gradient import pooled, query_jacobian, weighted_covariance
from viz_core.lessons.queries_keys_values.search_engine import ranks_while_learning

_SEEN = 0.01  # of a weight that counts as an answer
_REACHES = range(7)  # edits


def approximate(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """For how many edit limits each kernel gives weight to exactly the keys that the lookup finds."""
    distance, same = DISTANCES[question.compare], Counter[str]()
    for most in _REACHES:
        found = {each.place for each in approximate_lookup(question.query, database.keys, most, distance)}
        for name, kernel in edit_kernels(most).items():
            weights = edit_weights(question.query, database.keys, kernel, distance).tolist()
            same[name] += {place for place, weight in enumerate(weights) if weight >= _SEEN} == found
    values = {name: same[name] for name in edit_kernels(0)}
    query = escape(question.query)
    chapter.text("measured.approximate", query=query, last=_REACHES[-1], count=len(_REACHES), **values)


def covariance(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Compare the Jacobian of the reader's lookup with the weighted covariance and with the mean."""
    arguments = *embed_query_and_keys(question.query, database.keys), question.temperature
    slope = query_jacobian(*arguments)
    chapter.text(
        "measured.covariance",
        query=escape(question.query),
        temperature=f"{question.temperature:g}",
        slope=f"{float(slope.norm()):.4f}",
        off=f"{float((slope - weighted_covariance(*arguments) / question.temperature).norm()):.1e}",
        mean=f"{float((slope - pooled(*arguments)).norm()):.4f}",
    )


def search(chapter: Chapter, database: Database, question: QueryInputs) -> None:
    """Show the rank of the worst-matching key rise as clicks on it train the query."""
    query, keys = embed_query_and_keys(question.query, database.keys)
    clicked = int((keys @ query).argmin())
    ranks = ranks_while_learning(query, keys, clicked, question.temperature)
    chapter.text(
        "measured.search",
        query=escape(question.query),
        key=escape(database.keys[clicked]),
        before=ranks[0],
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
