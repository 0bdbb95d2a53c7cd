"""The cosine of the angle between query and key, with a learned scale."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.attention.scores.function import (
    Keys,
    Queries,
    ScoreCost,
    Scores,
    ScoreSizes,
    ScoringFunction,
    batch_product,
    check_same_width,
)

_LARGEST = 100.0  # the scale's limit, a temperature of 0.01 (Liu 2022, section 3.2)


def cosine_scores(queries: Queries, keys: Keys, scale: float | Float[Tensor, ""] = 1.0) -> Scores:
    """a(q, k) = s q^T k / (|q| |k|): -s to s, whatever the lengths; 0 for a vector of zeros.

    (Liu 2022, "Swin Transformer V2", equation 2, s = 1 / tau for a temperature tau.) Norms are in float32 or better.

    Raises:
        ValueError: if queries and keys differ in width or batch size.
    """
    check_same_width(queries, keys)
    compute = torch.promote_types(queries.dtype, torch.float32)
    directions = (F.normalize(vectors.to(compute), dim=-1) for vectors in (queries, keys))
    q, k = (direction.to(queries.dtype) for direction in directions)
    return scale * batch_product(q, k.transpose(1, 2))


class CosineScale(nn.Module):
    """The learned scale s of `cosine_scores`, stored as log s; at most 100, and at first 10 as in the authors' code."""

    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self) -> Float[Tensor, ""]:
        """s = exp(min(log s, log 100))."""
        return self.log_scale.clamp(max=math.log(_LARGEST)).exp()


def _cost(sizes: ScoreSizes) -> ScoreCost:
    """Each vector is squared and divided by its norm once; every pair is multiplied, and its sum by s."""
    batch, n, m, (_, d, _) = sizes
    return ScoreCost(1, batch * (2 * d * (n + m) + n * m * (d + 1)))


COSINE = ScoringFunction(
    "cosine",
    order=4,
    formula=r"s\, q^\top k / (\lVert q \rVert \lVert k \rVert)",
    scores=lambda learned, q, k: cosine_scores(q, k, learned()),
    cost=_cost,
    make=lambda _widths, _seed: CosineScale(),
    one_width=True,
    code=(cosine_scores, CosineScale),
)
