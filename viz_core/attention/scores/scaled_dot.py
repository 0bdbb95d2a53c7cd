"""The dot product of query and key, divided by the root of their width."""

import math

from torch import nn

from viz_core.attention.scores.dot import dot_scores
from viz_core.attention.scores.function import Keys, Queries, ScoreCost, Scores, ScoringFunction


def scaled_dot_scores(queries: Queries, keys: Keys) -> Scores:
    """a(q, k) = q^T k / sqrt(d), of variance 1 for entries of mean 0 and variance 1 (Vaswani 2017, section 3.2.1)."""
    return dot_scores(queries, keys) / math.sqrt(queries.shape[-1])


SCALED: ScoringFunction[nn.Module] = ScoringFunction(
    "scaled",
    order=1,
    formula=r"q^\top k / \sqrt d",
    scores=lambda _, q, k: scaled_dot_scores(q, k),
    cost=lambda sizes: ScoreCost(0, sizes.batch * sizes.queries * sizes.keys * (sizes.widths.key_size + 1)),
    one_width=True,
    code=(scaled_dot_scores,),
)
