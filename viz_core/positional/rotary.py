"""Rotary positions: rotated queries and keys, whose product depends on their offset alone."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from viz_core.positional.entry import PositionScheme, SchemeCost, SchemeEntry
from viz_core.positional.sinusoidal import angular_frequencies
from viz_core.torch_internals import is_transformed
from viz_core.trace.arguments import check_axes, check_device, check_tensors, described, is_whole


def apply_rotary(
    x: Float[Tensor, "batch heads n d"],
    positions: Real[Tensor, " n"] | Real[Tensor, "batch n"],
    base: float = 10000.0,
    interleaved: bool = True,
) -> Float[Tensor, "batch heads n d"]:
    """Rotate each pair of components by the angle position * omega_j, with omega_j = base^(-2j/d).

        (a, b) -> (a cos - b sin, a sin + b cos)       (Su 2021, equations 14, 15 and 34)

    Apply it to queries and to keys, never to values: q_m . k_n then depends on m - n alone.

    Args:
        x: queries or keys, split into heads.
        positions: one for each token, or one for each token of each batch row; whole or not, negative too.
        base: the base of the angular frequencies.
        interleaved: True pairs components (2j, 2j + 1), as in the paper; False pairs (j, j + d/2), the
            half-split form of Llama and GPT-NeoX. One is a permutation of the other's components, so
            weights trained with one form are wrong under the other.

    Returns:
        The type of x. Angles are float64, the rotation at least float32, rounded once at the end.

    Raises:
        ValueError: if x is not a floating-point tensor (batch, heads, n, d) with even d, positions are not numbers that
            fit x, or base is not positive.
    """
    check_tensors(x=x)
    if x.dim() != 4 or x.shape[-1] % 2:
        raise ValueError(f"x: expected (batch, heads, n, d) with an even d, got shape {tuple(x.shape)}")
    batch, _, n, d = x.shape
    if not isinstance(positions, Tensor) or positions.dtype == torch.bool or positions.is_complex():
        raise ValueError(f"positions: expected a tensor of numbers, got {described(positions)}")
    check_device(x=x, positions=positions if positions.is_meta else None)
    if tuple(positions.shape) not in ((n,), (batch, n)):  # no set: an exporter's sizes have no hash
        raise ValueError(f"positions: expected shape ({n},) or ({batch}, {n}), got {tuple(positions.shape)}")
    return _rotated(x, _table(positions, d, base, interleaved, x.device, _compute_type(x)))


class _Table(NamedTuple):
    """What `_rotated` needs of some positions, for each of the d components of x."""

    cos: Float[Tensor, "*positions d"]
    sin: Float[Tensor, "*positions d"]  # with its sign: -sin for a, +sin for b
    partner: Int[Tensor, " d"]  # the other component of each pair (a, b)


def _rotated(x: Tensor, table: _Table) -> Tensor:
    cos, sin, partner = table
    return torch.addcmul(x * cos, x.index_select(-1, partner), sin).to(x.dtype)


def _table(
    positions: Tensor, d: int, base: float, interleaved: bool, device: torch.device, dtype: torch.dtype
) -> _Table:
    # On the CPU: some accelerators have no float64, and every device rotates by the same angles.
    angles = positions.to("cpu", torch.float64)[..., None] * angular_frequencies(d, base)
    angles = angles[:, None] if positions.dim() == 2 else angles  # the same for every head
    pairs = (angles.cos(), angles.cos()), (-angles.sin(), angles.sin())
    join = (lambda pair: torch.stack(pair, dim=-1).flatten(-2)) if interleaved else partial(torch.cat, dim=-1)
    cos, sin = (join(pair).to(device, dtype) for pair in pairs)
    own = torch.arange(d // 2), torch.arange(d // 2, d)
    partner = torch.arange(d).view(-1, 2).flip(1).flatten() if interleaved else torch.cat(own[::-1])
    return _Table(cos, sin, partner.to(device))


@lru_cache(maxsize=64)
def _cached_table(
    start: int, n: int, d: int, base: float, interleaved: bool, device: torch.device, dtype: torch.dtype
) -> _Table:
    """`_table` of positions in a row: every layer, and queries as well as keys, rotate by the same angles."""
    with torch.inference_mode(False):  # else the table of a first call without gradients could not be trained with
        return _table(torch.arange(start, start + n), d, base, interleaved, device, dtype)


def _compute_type(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


@dataclass(frozen=True)
class Rotary(PositionScheme):
    """`apply_rotary` on the queries and keys of attention; it has no parameters.

    Args:
        base, interleaved: as in `apply_rotary`. Llama, Mistral and Gemma use interleaved=False.

    Raises:
        ValueError: if base is not positive.
    """

    base: float = 10000.0
    interleaved: bool = True

    def __post_init__(self) -> None:
        angular_frequencies(1, self.base)  # checks the base

    def rotate(self, x: Float[Tensor, "batch heads n d"], start: int = 0) -> Float[Tensor, "batch heads n d"]:
        """x rotated by the angles of positions start .. start + n - 1 (Su 2021, equation 34).

        Raises:
            ValueError: if x is not a floating-point tensor (batch, heads, n, d), start is negative, as where there are
                more queries than keys, or d is odd.
        """
        check_tensors(x=x)
        check_axes("batch heads n d", x=x)
        if not is_whole(start) or start < 0:
            raise ValueError(f"start: expected at least 0, with as many keys as queries or more, got {start}")
        n, d = x.shape[2:]
        if d % 2 or torch.compiler.is_compiling() or is_transformed(x) or x.is_meta or type(x) is not Tensor:
            return apply_rotary(x, torch.arange(start, start + n), self.base, self.interleaved)
        table = _cached_table(int(start), n, d, self.base, self.interleaved, x.device, _compute_type(x))
        return _rotated(x, table)


ROTARY = SchemeEntry(
    "rotary",
    order=7,
    formula=r"\langle R_m q,\ R_n k \rangle = \langle q,\ R_{n - m} k \rangle",
    enters="rotation",
    depends_on="offset",
    extrapolates=True,
    # n w stored: a cosine and a sine for each position and pair (Su 2021, equation 34).
    cost=lambda sizes: SchemeCost(stored=sizes.num_tokens * sizes.head_dim),
    make=lambda _: Rotary(),
    task_name="rotary",
    code=(apply_rotary,),
)
