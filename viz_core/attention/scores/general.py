"""A learned matrix between query and key."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.attention.scores.function import (
    ScoreCost,
    Scores,
    ScoreSizes,
    ScoreWidths,
    ScoringFunction,
    batch_product,
)
from viz_core.trace.arguments import check_axes, check_tensors


def general_scores(
    queries: Float[Tensor, "batch queries query_size"],
    keys: Float[Tensor, "batch keys key_size"],
    M: Float[Tensor, "query_size key_size"],
) -> Scores:
    """a(q, k) = q^T M k: a learned matrix between them, so their widths may differ.

    (Luong 2015, equation 8, "general". With M = W_q^T W_k it is the dot product of two projections,
    which is what every head of a Transformer computes.)

    Raises:
        ValueError: if M is not (query_size, key_size), the batch sizes differ, or one of the three is not a
            floating-point tensor of the others' type and device.
    """
    check_tensors(queries=queries, keys=keys, M=M)
    check_axes("batch n width", queries=queries, keys=keys)
    expected = (queries.shape[-1], keys.shape[-1])
    if tuple(M.shape) != expected:
        raise ValueError(f"M: expected shape {expected}, got {tuple(M.shape)}")
    return batch_product(queries @ M, keys.transpose(1, 2))


def make_matrix(widths: ScoreWidths, seed: int = 0) -> nn.ParameterList:
    """A random M for `general_scores`, small enough that scores start near 1."""
    shape = widths.query_size, widths.key_size
    M = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * (shape[0] * shape[1]) ** -0.5
    return nn.ParameterList([M])


def _cost(sizes: ScoreSizes) -> ScoreCost:
    """Each query is multiplied by M once, then by every key."""
    batch, n, m, (d_q, d_k, _) = sizes
    return ScoreCost(d_q * d_k, batch * (n * d_q * d_k + n * m * d_k))


GENERAL = ScoringFunction(
    "general",
    order=2,
    formula=r"q^\top M k",
    scores=lambda learned, q, k: general_scores(q, k, learned[0]),
    cost=_cost,
    make=make_matrix,
    code=(general_scores,),
)
