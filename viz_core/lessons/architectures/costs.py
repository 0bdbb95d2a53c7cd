"""Table 1 of "Attention Is All You Need", with numbers: cost, sequential steps and paths of a layer."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

# In the order of the table; the two convolutions differ in nothing but their path.
ARCHITECTURES = ("attention", "recurrent", "convolution", "dilated", "restricted")


class LayerSizes(NamedTuple):
    """What the cost of a layer depends on."""

    n: int  # tokens
    d: int  # width of a token's vector
    k: int  # tokens under one kernel of a convolution
    r: int  # tokens that restricted self-attention looks at


class LayerCost(NamedTuple):
    """A row of the table, as numbers."""

    order: int  # multiplications as the table has them, where constant factors do not count
    counted: int  # multiplications of the whole layer as torch builds it, projections and all
    sequential: int  # steps that cannot be done at once
    # what the table has for the longest path, where constant factors do not count; infinite where a stack never joins
    # all tokens
    path: float


def layer_cost(name: str, sizes: LayerSizes) -> LayerCost:
    """One row of Table 1 (Vaswani 2017, section 4) with these numbers.

    | layer | order | counted | sequential | path |
    | attention | n^2 d | 2 n^2 d + 4 n d^2 | 1 | 1 |
    | recurrent | n d^2 | 2 n d^2 | n | n |
    | convolution | k n d^2 | k n d^2 | 1 | n / k |
    | dilated | k n d^2 | k n d^2 | 1 | log_k n |
    | restricted | r n d | 2 r n d + 4 n d^2 | 1 | n / r |

    A window wider than the text is cut to it. `counted` leaves out biases, the softmax and the window's cut at
    the ends of the text: convolution multiplies padding too, and restricted self-attention is taken as n windows of r.
    """
    n, d, k, r = sizes.n, sizes.d, sizes.k, min(sizes.r, sizes.n)
    projections, convolution = 4 * n * d**2, k * n * d**2
    rows = {
        "attention": (n**2 * d, 2 * n**2 * d + projections, 1, 1.0),
        "recurrent": (n * d**2, 2 * n * d**2, n, float(n)),
        "convolution": (convolution, convolution, 1, _path(n, k, n / k)),
        "dilated": (convolution, convolution, 1, _path(n, k, math.log(n, max(2, k)))),
        "restricted": (r * n * d, 2 * r * n * d + projections, 1, _path(n, sizes.r, n / sizes.r)),
    }
    return LayerCost(*rows[name])


def crossover(name: str, sizes: LayerSizes) -> int:
    """The length n at which self-attention's n^2 d meets the order of another layer.

    d for recurrence, k d for convolution, r for restricted self-attention; below it, self-attention is cheaper.
    """
    return {"recurrent": sizes.d, "restricted": sizes.r}.get(name, sizes.k * sizes.d)


def _path(tokens: int, window: int, layers: float) -> float:
    """Return the longest path: no number of layers joins tokens of a window of one."""
    return math.inf if window == 1 and tokens > 1 else max(1.0, layers)


def path_length(name: str, first: int, last: int, sizes: LayerSizes) -> float:
    """Steps from token `first` until its signal reaches the unit at token `last`; infinite where it never does.

    With the distance D = last - first:
    self-attention 1; recurrence D steps along the states; contiguous convolution ceil(D / (k - 1)), as each layer
    adds k - 1 tokens; dilated convolution ceil(log_k(D + 1)), as L layers with steps 1, k, k^2, ... see k^L tokens;
    restricted self-attention ceil(D / (r - 1)). A token reaches itself at once: 0. No layer leads back, where D < 0.

    Every unit reads itself and earlier tokens, as in a decoder: self-attention has a causal mask. A network that reads
    as many tokens on both sides needs as many layers until some unit has seen both tokens.
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
