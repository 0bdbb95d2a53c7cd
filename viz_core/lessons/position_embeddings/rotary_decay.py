"""How the product of a rotated query and key changes with the distance between them."""

from __future__ import annotations

import torch
from jaxtyping import Float, Real
from torch import Tensor

from viz_core.positional.rotary import apply_rotary
from viz_core.positional.sinusoidal import angular_frequencies


def rotary_products(
    q: Float[Tensor, "d"], k: Float[Tensor, "d"], offsets: Real[Tensor, "n"], base: float = 10000.0, start: float = 0.0
) -> Float[Tensor, "n"]:
    """q_m . k_n for one query vector at position `start` and one key vector at start + offset."""
    keys = apply_rotary(k.expand(1, 1, len(offsets), -1), offsets + start, base)
    query = apply_rotary(q[None, None, None], offsets.new_full((1,), start, dtype=torch.float64), base)
    return (keys @ query.transpose(-2, -1))[0, 0, :, 0]


def rotary_decay(offsets: Real[Tensor, "n"], num_hiddens: int, base: float = 10000.0) -> Float[Tensor, "n"]:
    """The bound on |q_m . k_n| by distance, 1 at distance 0 (Su 2021, section 3.4.3 and figure 2).

    By Abel's summation |q_m . k_n| is at most a constant of q and k times

        sum over j = 1 .. d/2 of |S_j|,   S_j = sum over i < j of exp(1j offset omega_i),

    here divided by its value (d/2)(d/2 + 1)/2 at offset 0.

    Raises:
        ValueError: if num_hiddens is odd or < 1.
    """
    if num_hiddens < 1 or num_hiddens % 2:
        raise ValueError(f"num_hiddens: expected an even number, got {num_hiddens}")
    pairs = num_hiddens // 2
    return _partial_sums(offsets, num_hiddens, base) / (pairs * (pairs + 1) / 2)


def rotary_bound_ratio(
    q: Float[Tensor, "d"], k: Float[Tensor, "d"], offsets: Real[Tensor, "n"], base: float = 10000.0
) -> float:
    """The largest |q_m . k_n| / bound over these offsets: at most 1 (Su 2021, section 3.4.3).

    With h_j = q_j conj(k_j) for the pairs as complex numbers and h_(d/2) = 0, the bound is
    max over j of |h_(j+1) - h_j| times the sum of |S_j| that `rotary_decay` shows.
    """
    h = torch.view_as_complex(q.reshape(-1, 2)) * torch.view_as_complex(k.reshape(-1, 2)).conj()
    constant = torch.cat([h, h.new_zeros(1)]).diff().abs().max()
    bound = constant * _partial_sums(offsets, len(q), base)
    return float((rotary_products(q, k, offsets, base).abs() / bound).max())


def rotary_shift_residual(
    q: Float[Tensor, "d"], k: Float[Tensor, "d"], offsets: Real[Tensor, "n"], base: float = 10000.0, shift: float = 1000
) -> float:
    """max change of q_m . k_n over these offsets when both positions move on by `shift`: 0 if only m - n matters."""
    here, there = (rotary_products(q, k, offsets, base, start) for start in (0.0, shift))
    return float((here - there).abs().max())


def _partial_sums(offsets: Real[Tensor, "n"], num_hiddens: int, base: float) -> Float[Tensor, "n"]:
    """sum over j = 1 .. d/2 of |S_j|."""
    angles = offsets.double()[:, None] * angular_frequencies(num_hiddens, base)
    return torch.polar(torch.ones_like(angles), angles).cumsum(dim=-1).abs().sum(dim=-1)
