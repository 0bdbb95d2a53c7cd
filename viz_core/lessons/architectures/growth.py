"""How the parameters, weights and paths of self-attention grow with the text, counted on the layer."""

from collections.abc import Mapping

import torch

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.architectures.costs import LayerSizes
from viz_core.lessons.architectures.paths import longest_path
from viz_core.trace import attention_weights


def held(n: int, num_hiddens: int, num_heads: int) -> Mapping[str, int]:
    """Numbers of a layer on n tokens: its parameters, keys and values, weights of all heads, and its longest path.

    Counted by tensors that have a shape and no content, so that no length is too long.
    """
    sizes = LayerSizes(n, num_hiddens, 1, 1)
    layer = MultiHeadAttention(num_hiddens, num_heads).to("meta")
    X = torch.empty(1, n, num_hiddens, device="meta")
    with torch.no_grad():
        keys, values = layer.project(X, X)
        weights = attention_weights(keys, keys)
    return {
        "parameters": sum(p.numel() for p in layer.parameters()),
        "keys": keys.numel() + values.numel(),
        "weights": weights.numel(),
        "path": int(longest_path("attention", sizes)),
    }
