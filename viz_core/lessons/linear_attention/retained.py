"""What a constant decay leaves of a token, by its age."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.linear import retention, retention_decay


def decay_by_age(num_heads: int, num_ages: int) -> Float[Tensor, "heads ages"]:
    """Return g^age of each head's decay g, for ages 0, 1, ... (RetNet: Sun 2023, equation 8)."""
    return retention_decay(num_heads).double()[:, None] ** torch.arange(num_ages)


def map_error(num_heads: int, num_tokens: int = 64, width: int = 8) -> float:
    """Largest difference of a retention map of random queries and keys from g^(t - s) q_t . k_s."""
    draw = torch.Generator().manual_seed(0)
    queries, keys = (
        torch.randn(1, num_heads, num_tokens, width, generator=draw, dtype=torch.float64) for _ in range(2)
    )
    places = torch.arange(num_tokens)
    ages = (places[:, None] - places).clamp_min(0)
    expected = (queries @ keys.mT * decay_by_age(num_heads, num_tokens)[:, ages]).tril()
    return float((retention(queries, keys, retention_decay(num_heads).double()).map() - expected).abs().max())
