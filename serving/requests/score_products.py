"""Questions about single scores of a recorded run, in the form that a runner calls."""

from __future__ import annotations

from typing import Any

from viz_core.maps.score_products import ScoreProducts, score_products
from viz_core.trace.source import Projected


def products_of_pair(_model: Any, run: Any, site: str, head: int, query: int, key: int, row: int = 0) -> ScoreProducts:
    """`score_products` of a recorded run.

    Raises:
        KeyError: if the run has no such site.
        IndexError, ValueError: as `score_products`.
    """
    return score_products(run.trace[site], head, query, key, row)


def keeps_queries_and_keys(_model: Any, run: Any) -> bool:
    """Whether a run's calls have queries and keys for `score_products`; some models record whole maps only."""
    return all(isinstance(call.source, Projected) for call in run.trace)
