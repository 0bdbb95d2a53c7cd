"""Scoring functions: how well a query and a key match, as one number for every pair; one file a function."""

from typing import Any

from viz_core.attention.scores.dot import dot_scores
from viz_core.attention.scores.function import ScoringFunction, batch_product
from viz_core.attention.scores.general import general_scores
from viz_core.attention.scores.scaled_dot import scaled_dot_scores
from viz_core.runtime.registry import find_entries

__all__ = ["batch_product", "dot_scores", "general_scores", "scaled_dot_scores"]

FUNCTIONS: tuple[ScoringFunction[Any], ...] = find_entries("viz_core.attention.scores", ScoringFunction)
"""Every scoring function of this package, in the order of every list."""

BY_NAME = {function.name: function for function in FUNCTIONS}
"""Every scoring function by its name."""
