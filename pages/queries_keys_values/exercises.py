"""The experiments that decide the book's exercises, shown once a reader has answered."""

from __future__ import annotations

import torch

from pages.queries_keys_values.names import Database, Question
from ui.chapter import Chapter
from ui.controls import escape
from viz_core.lessons.queries_keys_values.lookup import embed_words
from viz_core.lessons.queries_keys_values.query_gradient import pooled, query_jacobian, weighted_covariance


def covariance(chapter: Chapter, database: Database, question: Question) -> None:
    """The slope of the reader's own lookup by automatic differentiation, beside the covariance and the mean."""
    query, *keys = embed_words([question.query, *database.keys])
    asked = query, torch.stack(keys), question.temperature
    slope = query_jacobian(*asked)
    chapter.text(
        "measured.covariance",
        query=escape(question.query),
        temperature=f"{question.temperature:g}",
        slope=f"{float(slope.norm()):.4f}",
        off=f"{float((slope - weighted_covariance(*asked) / question.temperature).norm()):.1e}",
        mean=f"{float((slope - pooled(*asked)).norm()):.4f}",
    )
