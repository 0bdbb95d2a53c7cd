"""How many layers or steps a signal needs from one token to another, counted exactly, and drawn as a network.

Every unit reads itself and earlier tokens, as in a decoder, so that all layers are compared alike: self-attention has
a causal mask. A network that reads the same number of tokens on both sides needs as many layers until some unit has
seen both tokens.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.architectures.costs import LayerSizes


def path_length(name: str, first: int, last: int, sizes: LayerSizes) -> float:
    """Steps from token `first` until its signal reaches the unit at token `last`; infinite where it never does.

    With the distance D = last - first:
    self-attention 1; recurrence D steps along the states; contiguous convolution ceil(D / (k - 1)), as each layer
    adds k - 1 tokens; dilated convolution ceil(log_k(D + 1)), as L layers with steps 1, k, k^2, ... see k^L tokens;
    restricted self-attention ceil(D / (r - 1)). A token reaches itself at once: 0. No layer leads back, where D < 0.
    """
    distance = last - first
    if distance == 0:
        return 0
    if distance < 0:
        return math.inf
    if name == "attention":
        return 1
    if name == "recurrent":
        return distance
    window = sizes.r if name == "restricted" else sizes.k
    if window == 1:
        return math.inf
    if name == "dilated":
        return _layers_of_powers(distance + 1, window)
    return -(-distance // (window - 1))


def longest_path(name: str, sizes: LayerSizes) -> float:
    """The path between the first and the last token: no pair has a longer one."""
    return path_length(name, 0, sizes.n - 1, sizes)


def path_matrix(name: str, sizes: LayerSizes) -> Float[Tensor, "n n"]:
    """Path length from each token (row) to each (column); infinite where none leads."""
    tokens = range(sizes.n)
    return torch.tensor([[float(path_length(name, first, last, sizes)) for last in tokens] for first in tokens])


def _layers_of_powers(tokens: int, k: int) -> int:
    """The least L with k^L >= tokens, in whole numbers: a logarithm would round."""
    layers, reach = 0, 1
    while reach < tokens:
        layers, reach = layers + 1, reach * k
    return layers
