"""Parts of single schemes, with the residuals of claims about them: skew, buckets, grids and rotary decay."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float, Int, Real
from torch import Tensor
from torch.nn import functional as F

from viz_core.lessons.position_embeddings.order import SharedLayer
from viz_core.positional import relative_to_absolute_steps
from viz_core.positional.alibi import alibi_bias, alibi_slopes
from viz_core.positional.entry import relative_positions
from viz_core.positional.relative import RELATIVE_2D, RelativePositionEmbedding2d, relative_to_absolute
from viz_core.positional.rotary import apply_rotary
from viz_core.positional.sinusoidal import sinusoidal_table
from viz_core.positional.t5 import t5_bucket_ranges, t5_relative_position_bucket


def skew_of_left_padding(scores: Float[Tensor, "n offsets"]) -> Float[Tensor, "n n"]:
    """A skew that pads on the left: every row is read one offset too early."""
    n, offsets = scores.shape
    line = F.pad(rearrange(F.pad(scores, (1, 0)), "n width -> (n width)"), (0, n - 1))
    return rearrange(line, "(rows offsets) -> rows offsets", offsets=offsets)[:n, n - 1 :]


def added_residuals(
    q: Float[Tensor, " d"], k: Float[Tensor, " d"], offsets: Tensor, base: float, shift: int = 1000
) -> tuple[float, float]:
    """Max change of (q + p_m) . (k + p_n) when both positions grow by `shift`, and of |q| as p_m is added."""
    reach = int(offsets.abs().max())
    table = sinusoidal_table(shift + 2 * reach + 1, len(q), base, dtype=torch.float64)

    def products(start: int) -> Tensor:
        return (k + table[start + reach + offsets]) @ (q + table[start + reach])

    lengths = (q + table[: 2 * reach + 1]).norm(dim=-1) - q.norm()
    return float((products(shift) - products(0)).abs().max()), float(lengths.abs().max())


def wrong_penalty(how: str, num_heads: int, num_tokens: int) -> Float[Tensor, "heads tokens tokens"]:
    """ALiBi's bias with an error: "from-one", slopes that begin at 1; "logarithm", -slope * log(1 + distance)."""
    slopes = alibi_slopes(num_heads)
    if how == "from-one":
        return alibi_bias(num_heads, num_tokens, num_tokens) / slopes[0]
    return -slopes[:, None, None] * relative_positions(num_tokens, num_tokens).abs().double().log1p()


STAGES = ("scores", "padded", "flattened", "extended", "reshaped", "result")


def skew_stages(num_tokens: int) -> dict[str, Int[np.ndarray, "rows columns"]]:
    """Where each entry of the n x (2n - 1) scores is at each stage: i (2n - 1) + c + 1, and 0 for padding."""
    entries = torch.arange(1, num_tokens * (2 * num_tokens - 1) + 1).reshape(num_tokens, -1).float()
    tensors = (entries, *relative_to_absolute_steps(entries))
    return {name: np.atleast_2d(t.numpy()).astype(np.int64) for name, t in zip(STAGES, tensors, strict=True)}


def offsets_of(entries: Int[np.ndarray, "rows columns"], num_tokens: int) -> Float[np.ndarray, "rows columns"]:
    """The offset c - (n - 1) that each entry stands for; NaN for padding."""
    columns = (entries - 1) % (2 * num_tokens - 1)
    return np.where(entries > 0, columns - (num_tokens - 1), np.nan).astype(np.float32)


class BucketMap(NamedTuple):
    """The bucket of each offset from -reach to reach, and the distances that each bucket of past keys holds."""

    offsets: Int[Tensor, " n"]
    buckets: Int[Tensor, " n"]
    # (bucket, nearest, farthest distance); None where a bucket has no end
    ranges: tuple[tuple[int, int, int | None], ...]
    used: int  # number of buckets that some offset falls into
    exact: int  # number of buckets that hold a single distance


def bucket_map(bidirectional: bool, num_buckets: int, max_distance: int) -> BucketMap:
    """Buckets up to a quarter beyond max_distance, where all offsets share the last (Raffel 2020, section 2.1)."""
    reach = max_distance + max_distance // 4
    offsets = torch.arange(-reach, reach + 1)
    buckets = t5_relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    ranges = t5_bucket_ranges(bidirectional, num_buckets, max_distance)
    exact = sum(low == high for _, low, high in ranges)
    return BucketMap(offsets, buckets, ranges, len(buckets.unique()), exact)


class GridTerms(NamedTuple):
    """Offsets of every cell from one query cell, down and across, and what these add to its score."""

    row_offsets: Int[Tensor, "height width"]
    column_offsets: Int[Tensor, "height width"]
    row_term: Float[Tensor, "height width"]
    column_term: Float[Tensor, "height width"]

    @property
    def total(self) -> Float[Tensor, "height width"]:
        """row term + column term."""
        return self.row_term + self.column_term


@torch.no_grad()
def grid_terms(
    q: Float[Tensor, "heads tokens d"], module: RelativePositionEmbedding2d, row: int, column: int, head: int = 0
) -> GridTerms:
    """q . r_(row offset) / sqrt(d) and q . c_(column offset) / sqrt(d) for the query at (row, column).

    Looks up every vector in the tables by its offset, without the skew that the module uses.
    """
    height, width = module.height, module.width
    query = q[head, row * width + column]
    down = torch.arange(height) - row
    across = torch.arange(width) - column
    scale = query.shape[0] ** -0.5
    by_row = _table(module.rows.weight, head)[down + height - 1] @ query * scale
    by_column = _table(module.columns.weight, head)[across + width - 1] @ query * scale
    parts = (down[:, None], across, by_row[:, None], by_column)
    return GridTerms(*(part.expand(height, width) for part in parts))


def layer_terms(
    layer: SharedLayer, row: int, column: int, head: int = 0
) -> tuple[GridTerms, Float[Tensor, "height width"]]:
    """`grid_terms` of the 2-D scheme in a layer, and what its module adds to the scores of the same query."""
    sizes = layer.sizes
    module = cast(RelativePositionEmbedding2d, layer.make(RELATIVE_2D))
    q, _, _, bias = layer.project(RELATIVE_2D)
    added = bias[0, head, row * sizes.width + column].reshape(sizes.height, sizes.width)
    return grid_terms(q[0], module, row, column, head), added


def _table(weight: Tensor, head: int) -> Float[Tensor, "offsets d"]:
    """A head's table, or the one that all heads share."""
    return weight if weight.dim() == 2 else weight[head]


def column_major(terms: GridTerms) -> GridTerms:
    """The terms with the column term laid out column by column, not row by row: a bug in AI Summer's article."""
    height, width = terms.column_term.shape
    return terms._replace(column_term=terms.column_term.T.reshape(height, width))


# Press 2022, section 3: the slopes of 8 and of 16 heads.
PUBLISHED_SLOPES = {8: tuple(2.0**-i for i in range(1, 9)), 16: tuple(2.0 ** (-i / 2) for i in range(1, 17))}
# Raffel 2020 and the authors' code, 32 buckets in both directions: the nearest distance of buckets 0 to 15.
PUBLISHED_BUCKETS = (*range(8), 8, 12, 16, 23, 32, 46, 64, 91)


def skew_error(num_tokens: int, skew: Callable[[Tensor], Tensor] = relative_to_absolute) -> float:
    """max |result of the skew - scores[i, j - i + n - 1] looked up one by one|, on random scores."""
    scores = torch.randn(num_tokens, 2 * num_tokens - 1, generator=torch.Generator().manual_seed(0))
    indexed = scores.gather(1, relative_positions(num_tokens, num_tokens) + num_tokens - 1)
    return float((skew(scores) - indexed).abs().max())


def row_spread(bias: Float[Tensor, "heads n n"]) -> float:
    """How much the rows of a map differ: max over keys of max - min over queries."""
    return float((bias.amax(dim=1) - bias.amin(dim=1)).max())


def clipping_spread(bias: Float[Tensor, "heads n n"], max_distance: int) -> float:
    """How much the scores of one query differ among keys max_distance or more to one side: 0 if these are all one."""
    offsets = relative_positions(*bias.shape[1:])
    worst = 0.0
    for far in (offsets >= max_distance, offsets <= -max_distance):
        highest = bias.masked_fill(~far, -torch.inf).amax(dim=-1)
        lowest = bias.masked_fill(~far, torch.inf).amin(dim=-1)
        worst = max(worst, float((highest - lowest)[:, far.any(dim=-1)].amax()) if far.any() else 0.0)
    return worst


def slope_error(slopes: Float[Tensor, " heads"]) -> float:
    """max |slopes - the published ones| of 8 or 16 heads."""
    return float((slopes - torch.tensor(PUBLISHED_SLOPES[len(slopes)], dtype=torch.float64)).abs().max())


def evenness_error(penalty: Float[Tensor, "heads n n"]) -> float:
    """max over heads of |penalty - slope * distance|: each step further costs as much as the one before."""
    distance = relative_positions(*penalty.shape[1:]).abs()
    return float((penalty + alibi_slopes(len(penalty))[:, None, None] * distance).abs().max())


def bucket_errors(bidirectional: bool = True) -> int:
    """How many of T5's 16 buckets of one direction begin at another distance than published."""
    nearest = {bucket: start for bucket, start, _ in t5_bucket_ranges(bidirectional)}
    return sum(nearest.get(bucket) != start for bucket, start in enumerate(PUBLISHED_BUCKETS))


Vector: TypeAlias = Float[Tensor, " d"]
Offsets: TypeAlias = Real[Tensor, " n"]
Line: TypeAlias = Float[Tensor, " n"]

REACH = 200
CLOSE, FAR = (1, 50), (151, 200)  # distances whose mean sizes are compared


class DecayCurves(NamedTuple):
    """q_m . k_n by offset n - m from -REACH to REACH, for q = k of equal components and length 1."""

    offsets: Int[Tensor, " n"]
    products: Line
    product: float  # at the offset chosen
    # close_mean, far_mean: mean |q_m . k_n| over the distances CLOSE and FAR
    close_mean: float
    far_mean: float


class RotaryProofs(NamedTuple):
    """Residuals of random q and k over all offsets: the first two are near 0."""

    shift: float  # change of q_m . k_n when both positions grow by 1,000
    length: float  # change of |q| by rotation
    # added_shift, added_length: the same changes where positions are added instead
    added_shift: float
    added_length: float


def decay_curves(num_hiddens: int, base: float, offset: int) -> DecayCurves:
    """Products of one width and base, with those of one offset by themselves."""
    q = torch.ones(num_hiddens, dtype=torch.float64) * num_hiddens**-0.5
    offsets = torch.arange(-REACH, REACH + 1)
    products = rotary_products(q, q, offsets, base)
    close, far = (mean_size(products, offsets, *distances) for distances in (CLOSE, FAR))
    return DecayCurves(offsets, products, float(products[REACH + offset]), close, far)


def rotary_proofs(num_hiddens: int, base: float) -> RotaryProofs:
    """What must hold of rotations of this width and base, measured on one random q and k."""
    generator = torch.Generator().manual_seed(num_hiddens)
    q, k = torch.randn(2, num_hiddens, dtype=torch.float64, generator=generator)
    offsets = torch.arange(-REACH, REACH + 1)
    rotated = apply_rotary(q.expand(1, 1, len(offsets), -1), offsets, base)
    shift = rotary_shift_residual(q, k, offsets, base)
    length = float((rotated.norm(dim=-1) - q.norm()).abs().max())
    return RotaryProofs(shift, length, *added_residuals(q, k, offsets, base))


def rotary_products(q: Vector, k: Vector, offsets: Offsets, base: float = 10000.0, start: float = 0.0) -> Line:
    """q_m . k_n for one query vector at position `start` and one key vector at start + offset."""
    keys = apply_rotary(k.expand(1, 1, len(offsets), -1), offsets + start, base)
    query = apply_rotary(q[None, None, None], offsets.new_full((1,), start, dtype=torch.float64), base)
    return (keys @ query.transpose(-2, -1))[0, 0, :, 0]


def mean_size(products: Line, offsets: Offsets, nearest: int, farthest: int) -> float:
    """Mean of |q_m . k_n| over the offsets whose distance is from `nearest` to `farthest`."""
    distance = offsets.abs()
    return float(products[(distance >= nearest) & (distance <= farthest)].abs().mean())


def rotary_shift_residual(q: Vector, k: Vector, offsets: Offsets, base: float = 10000.0, shift: float = 1000) -> float:
    """Largest change of q_m . k_n over these offsets when both positions grow by `shift`: 0 if only m - n matters."""
    here, there = (rotary_products(q, k, offsets, base, start) for start in (0.0, shift))
    return float((here - there).abs().max())
