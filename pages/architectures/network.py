"""Units and connections of a stack of layers, and a shortest path through them."""

from __future__ import annotations

import math
from typing import NamedTuple

from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, path_length


class Unit(NamedTuple):
    """A place in the network: layer 0 holds the tokens themselves."""

    layer: int
    token: int


Edge = tuple[Unit, Unit]


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
