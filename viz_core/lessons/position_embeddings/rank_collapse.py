"""Rank collapse: in deep stacks of self-attention without skip connections all tokens become the same."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from viz_core.runtime.interruption import may_end
from viz_core.trace import attend

# With a skip connection, with a feed-forward net.
STACKS = {"attention": (False, False), "mlp": (False, True), "skip": (True, False), "skip-mlp": (True, True)}


def distance_to_equal_rows(X: Float[Tensor, "n d"]) -> float:
    """||X - 1 x^T|| / ||X||, with x the mean row: 0 where all tokens are the same, 1 where their mean is 0.

    1 x^T is the nearest matrix whose rows are all the same, which has rank one (Dong 2021, "Attention
    is not all you need", section 2.1; here in the Frobenius norm).
    """
    return float((X - X.mean(dim=0)).norm() / X.norm())


@torch.no_grad()
def collapse_curves(
    X: Float[Tensor, "n d"], depth: int, num_heads: int, seed: int = 0
) -> dict[str, Float[Tensor, " layers"]]:
    """Distance to equal rows before and after each of `depth` random layers, for each of the four STACKS.

    The four stacks share their random weights, N(0, 1/fan-in). After each layer the whole of X is divided by its root
    mean square, which changes no distance. float64, so that a collapse can be followed down to 1e-16.
    """
    d = X.shape[1]
    generator = torch.Generator().manual_seed(seed)
    streams = dict.fromkeys(STACKS, X.double())
    curves = {name: [distance_to_equal_rows(X.double())] for name in STACKS}
    for _ in range(depth):
        may_end()
        W_q, W_k, W_v, W_o, W_1, W_2 = (torch.randn(d, d, generator=generator).double() * d**-0.5 for _ in range(6))
        for name, (skip, mlp) in STACKS.items():
            H = streams[name]
            Q, K, V = (rearrange(H @ W, "n (h d) -> 1 h n d", h=num_heads) for W in (W_q, W_k, W_v))
            attended = rearrange(attend(Q, K, V), "1 h n d -> n (h d)") @ W_o
            H = H + attended if skip else attended
            if mlp:
                fed = 2**0.5 * (H @ W_1).relu() @ W_2  # relu halves the variance
                H = H + fed if skip else fed
            streams[name] = H / H.square().mean().sqrt()
            curves[name].append(distance_to_equal_rows(streams[name]))
    return {name: torch.tensor(curve, dtype=torch.float64) for name, curve in curves.items()}


def layers_until_alike(curve: Float[Tensor, " layers"], distance: float = 1e-12) -> int | None:
    """Number of layers after which the rows are equal up to float64 rounding; None where they never are."""
    alike = (curve <= distance).nonzero()
    return int(alike[0]) if len(alike) else None


def largest_ratio(curve: Float[Tensor, " layers"]) -> float:
    """Largest ratio of the distance after a layer to that before it, where the latter is above rounding."""
    before, after = curve[:-1], curve[1:]
    return float((after / before)[before > 1e-12].max())
