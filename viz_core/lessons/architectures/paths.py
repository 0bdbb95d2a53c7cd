"""How many layers or steps a signal needs from one token to another, counted exactly, and drawn as a network.

Every unit reads itself and earlier tokens, as in a decoder, so that all layers are compared alike: self-attention has
a causal mask. A network that reads the same number of tokens on both sides needs as many layers until some unit has
seen both tokens.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes


class Unit(NamedTuple):
    """A place in the network: layer 0 holds the tokens themselves."""

    layer: int
    token: int


Edge = tuple[Unit, Unit]


def path_length(name: str, first: int, last: int, sizes: LayerSizes) -> float:
    """Steps from token `first` until its signal reaches the unit at token `last`; infinite where it never does.

    With the distance D = last - first:
    self-attention 1; recurrence D steps along the states; contiguous convolution ceil(D / (k - 1)), as each layer
    adds k - 1 tokens; dilated convolution ceil(log_k(D + 1)), as L layers with steps 1, k, k^2, ... see k^L tokens;
    restricted self-attention ceil(D / (r - 1)). A token reaches itself at once: 0. No layer leads back, where D < 0.
    """
    if name not in ARCHITECTURES:
        raise ValueError(f"name: expected one of {', '.join(ARCHITECTURES)}, got {name!r}")
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


def connections(name: str, sizes: LayerSizes, num_layers: int) -> list[Edge]:
    """Every connection of a stack of layers, from input unit to output unit.

    Recurrence is one layer, whatever `num_layers`: its states are joined to each other.
    """
    if name not in ARCHITECTURES:
        raise ValueError(f"name: expected one of {', '.join(ARCHITECTURES)}, got {name!r}")
    tokens = range(sizes.n)
    if name == "recurrent":
        up = [(Unit(0, t), Unit(1, t)) for t in tokens]
        return up + [(Unit(1, t - 1), Unit(1, t)) for t in tokens if t]
    return [
        (Unit(layer - 1, t - back), Unit(layer, t))
        for layer in range(1, num_layers + 1)
        for t in tokens
        for back in _reads(name, layer, sizes)
        if 0 <= t - back < sizes.n
    ]


def shortest_path(name: str, first: int, last: int, sizes: LayerSizes) -> list[Unit]:
    """Units along a shortest way from token `first` to a unit at token `last`; empty where there is none.

    The first unit is the token itself; in a recurrent network, whose path is counted along its states, the state that
    takes the token in. A way of length L has L + 1 units.
    """
    length = path_length(name, first, last, sizes)
    if math.isinf(length):
        return []
    if name == "recurrent":
        return [Unit(1, t) for t in range(first, last + 1)]
    way, token = [Unit(0, first)], first
    for layer in range(1, int(length) + 1):
        token = _closest(name, layer, token, last, sizes)
        way.append(Unit(layer, token))
    return way


def _reads(name: str, layer: int, sizes: LayerSizes) -> range:
    """How far back a unit of this layer reads."""
    if name == "attention":
        return range(sizes.n)
    if name == "dilated":
        step = sizes.k ** (layer - 1)
        return range(0, min(sizes.k * step, sizes.n + step), step)
    return range(sizes.r if name == "restricted" else sizes.k)


def _closest(name: str, layer: int, token: int, last: int, sizes: LayerSizes) -> int:
    """The unit of this layer closest to the end from which the remaining layers reach it."""
    if name == "attention":
        return last
    if name != "dilated":
        return min(last, token + max(_reads(name, layer, sizes)))
    # D in base k: each layer with step k^(layer-1) covers one digit.
    step = sizes.k ** (layer - 1)
    return token + (last - token) // step % sizes.k * step


def _layers_of_powers(tokens: int, k: int) -> int:
    """The least L with k^L >= tokens, in whole numbers: a logarithm would round."""
    layers, reach = 0, 1
    while reach < tokens:
        layers, reach = layers + 1, reach * k
    return layers
