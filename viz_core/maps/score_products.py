"""Decomposition of a score: products of query and key by dimension, and the terms added before the softmax."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from viz_core.trace import AttentionCall
from viz_core.trace.arguments import index_range
from viz_core.trace.source import Projected
from viz_core.trace.weights import MASKED_SCORE


@dataclass(frozen=True, eq=False)
class ScoreProducts:
    """A score and the terms that add up to it."""

    # query, key: as they meet, after projection, and after rotation where positions rotate them
    query: Float[np.ndarray, " d"]
    key: Float[np.ndarray, " d"]
    scale: float  # what their product is multiplied by
    products: Float[np.ndarray, " d"]  # scale q_c k_c of every dimension c
    cap: float  # what a softcap changes, c tanh(s / c) - s of the sum s; 0 without one
    bias: float  # what is added after that: a position bias, the score of a learned sink; 0 where there is none
    score: float  # what the softmax is given for this pair; -inf where the key is hidden from the query
    weight: float  # what the softmax makes of it, 0 to 1

    @property
    def total(self) -> float:
        """Sum of the products, the change by the softcap and the bias."""
        return float(self.products.sum()) + self.cap + self.bias

    @property
    def hidden(self) -> bool:
        """Whether a mask hides the key from the query."""
        return self.score <= MASKED_SCORE

    @property
    def half(self) -> int:
        """Fewest dimensions that hold half of sum_c |product_c|; 0 where all products are 0."""
        sizes = -np.sort(-np.abs(self.products))
        return int(np.searchsorted(sizes.cumsum(), sizes.sum() / 2)) + 1 if sizes.any() else 0

    @property
    def residual(self) -> float:
        """Rounding error |total - score|; 0 where the key is hidden."""
        return 0.0 if self.hidden else abs(self.total - self.score)


@torch.no_grad()
def score_products(call: AttentionCall, head: int, query: int, key: int, row: int = 0) -> ScoreProducts:
    """s_ij = cap(sum_c scale q_ic k_jc) + b_ij, term by term (Vaswani 2017, equation 1; the view is Vig's neuron view,
    "A Multiscale Visualization of Attention in the Transformer Model", 2019, section 2.3).

    The score it is compared with is the one whose softmax the recorded weights are; terms are added in float64.

    Args:
        head, query, key: numbers from 0.
        row: which row of the batch.

    Raises:
        IndexError: if there is no such row, head, query or key.
        ValueError: if the call kept whole maps in place of queries and keys, if this head's scores are edited by an
            intervention, or if what was recorded has been changed in place since.
    """
    source = call.source
    if not isinstance(source, Projected) or source.signed:
        given = call.rule if call.signed else "a layer that gives whole maps"
        raise ValueError(f"site {call.site!r}: expected queries and keys, got {given}")
    places = zip((row, head, query, key), source.shape, ("row", "head", "query", "key"), strict=True)
    row, head, query, key = (index_range(place, size, name)[0] for place, size, name in places)
    if source.edits is not None and source.edits.of(head):
        raise ValueError(f"site {call.site!r}: expected a head without interventions, got one that is edited")
    group = source.queries.shape[1] // source.keys.shape[1]
    q, k = source.queries[row, head, query].cpu().double(), source.keys[row, head // group, key].cpu().double()
    products = source.scale * q * k
    total, cap = float(products.sum()), source.softcap
    capped = total if cap is None else cap * float(np.tanh(total / cap))
    score = source.scores(slice(head, head + 1), slice(query, query + 1))[row, 0, 0, key]
    bias = 0.0 if source.bias is None else float(source.bias.expand(source.shape)[row, head, query, key])
    weight = float(call.weights(head=head, queries=query, keys=key)[row])
    terms = (products.numpy(), capped - total, bias)
    return ScoreProducts(q.numpy(), k.numpy(), source.scale, *terms, float(score), weight)
