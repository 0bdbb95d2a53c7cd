"""Table 1 of "Attention Is All You Need", with numbers: cost, sequential steps and longest path of a layer."""

import math
from collections.abc import Callable
from dataclasses import dataclass

# In the order of the table; the two convolutions differ in nothing but their path.
ARCHITECTURES = ("attention", "recurrent", "convolution", "dilated", "restricted")


@dataclass(frozen=True)
class LayerSizes:
    """What the cost of a layer depends on."""

    n: int  # tokens
    d: int  # width of a token's vector
    k: int  # tokens under one kernel of a convolution
    r: int  # tokens that restricted self-attention looks at


@dataclass(frozen=True)
class LayerCost:
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
    return _ROWS[name](sizes)


def crossover(name: str, sizes: LayerSizes) -> int:
    """The length n at which self-attention's n^2 d meets the order of another layer.

    d for recurrence, k d for convolution, r for restricted self-attention; below it, self-attention is cheaper.
    """
    lengths = {"recurrent": sizes.d, "convolution": sizes.k * sizes.d, "dilated": sizes.k * sizes.d}
    lengths["restricted"] = sizes.r
    return lengths[name]


def _convolution(s: LayerSizes) -> LayerCost:
    cost = s.k * s.n * s.d**2
    return LayerCost(cost, cost, 1, _path(s.n, s.k, s.n / s.k))


def _dilated(s: LayerSizes) -> LayerCost:
    cost = s.k * s.n * s.d**2
    return LayerCost(cost, cost, 1, _path(s.n, s.k, math.log(s.n, max(2, s.k))))


def _restricted(s: LayerSizes) -> LayerCost:
    r = min(s.r, s.n)
    return LayerCost(r * s.n * s.d, 2 * r * s.n * s.d + 4 * s.n * s.d**2, 1, _path(s.n, s.r, s.n / s.r))


def _path(tokens: int, window: int, layers: float) -> float:
    """Return the longest path: no number of layers joins tokens of a window of one."""
    return math.inf if window == 1 and tokens > 1 else max(1.0, layers)


_ROWS: dict[str, Callable[[LayerSizes], LayerCost]] = {
    "attention": lambda s: LayerCost(s.n**2 * s.d, 2 * s.n**2 * s.d + 4 * s.n * s.d**2, 1, 1.0),
    "recurrent": lambda s: LayerCost(s.n * s.d**2, 2 * s.n * s.d**2, s.n, float(s.n)),
    "convolution": _convolution,
    "dilated": _dilated,
    "restricted": _restricted,
}
