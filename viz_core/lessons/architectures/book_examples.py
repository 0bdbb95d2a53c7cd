"""What the book prints of self-attention: the shape of its output (Dive into Deep Learning, section 11.6)."""

import torch

from viz_core.attention.multi_head import MultiHeadAttention


@torch.no_grad()
def self_attention_shape() -> tuple[int, ...]:
    """The shape of 5 heads, 100 wide, over 2 sentences of 4 tokens, of which the second has 2."""
    layer, X = MultiHeadAttention(100, 5), torch.ones(2, 4, 100)
    return tuple(layer(X, X, X, torch.tensor([3, 2])).shape)
