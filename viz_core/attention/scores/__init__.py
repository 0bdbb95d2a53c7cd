"""Scoring functions: how well a query and a key match, as one number for every pair; one file a function."""

from viz_core.attention.scores.dot import dot_scores
from viz_core.attention.scores.function import batch_product
from viz_core.attention.scores.general import general_scores
from viz_core.attention.scores.scaled_dot import scaled_dot_scores

__all__ = ["batch_product", "dot_scores", "general_scores", "scaled_dot_scores"]
