"""A small network on query and key: the scores of `AdditiveAttention`."""

import torch

from viz_core.attention.additive import AdditiveAttention
from viz_core.attention.scores.function import ScoreCost, ScoreSizes, ScoreWidths, ScoringFunction


def make_additive(widths: ScoreWidths, seed: int = 0) -> AdditiveAttention:
    """Additive attention of these widths, its weights drawn from a generator of their own."""
    layer = AdditiveAttention(*widths).eval()
    generator = torch.Generator().manual_seed(seed)  # torch's own is shared between sessions
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0, parameter.shape[-1] ** -0.5, generator=generator)
    return layer


def _cost(sizes: ScoreSizes) -> ScoreCost:
    """Each query and each key is projected once; every pair is multiplied by w_v."""
    batch, n, m, (d_q, d_k, h) = sizes
    return ScoreCost(h * (d_q + d_k + 1), batch * h * (n * d_q + m * d_k + n * m))


ADDITIVE = ScoringFunction(
    "additive",
    order=3,
    formula=r"w_v^\top \tanh(W_q q + W_k k)",
    scores=lambda layer, q, k: layer.score(q, layer.W_k(k)),
    cost=_cost,
    make=make_additive,
    code=(AdditiveAttention,),
)
