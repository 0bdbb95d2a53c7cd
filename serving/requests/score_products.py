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


def keeps_queries_and_keys(_model: Any, run: Any, site: str) -> bool:
    """Whether a call of a run has scores for `score_products`: not a map recorded whole, nor one without a softmax."""
    call = run.trace[site]
    return isinstance(call.source, Projected) and not call.signed
