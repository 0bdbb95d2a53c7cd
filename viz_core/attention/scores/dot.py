"""The dot product of query and key."""

from torch import nn

from viz_core.attention.scores.function import (
    Keys,
    Queries,
    ScoreCost,
    Scores,
    ScoringFunction,
    batch_product,
    check_same_width,
)


def dot_scores(queries: Queries, keys: Keys) -> Scores:
    """a(q, k) = q^T k: no parameters, and one width for both (Luong 2015, equation 8, "dot").

    Raises:
        ValueError: if queries and keys differ in width or batch size.
    """
    check_same_width(queries, keys)
    return batch_product(queries, keys.transpose(1, 2))


DOT: ScoringFunction[nn.Module] = ScoringFunction(
    "dot",
    order=0,
    formula=r"q^\top k",
    scores=lambda _, q, k: dot_scores(q, k),
    cost=lambda sizes: ScoreCost(0, sizes.batch * sizes.queries * sizes.keys * sizes.widths.key_size),
    one_width=True,
    code=(dot_scores,),
)
