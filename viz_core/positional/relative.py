"""Relative positions along a line: one learned vector for each offset from query to key."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.positional.entry import (
    PositionScheme,
    SchemeCost,
    SchemeEntry,
    SchemeSizes,
    check_learned,
    check_queries,
    relative_positions,
)
from viz_core.trace.arguments import check_like, check_tensors, check_whole
from viz_core.trace.weights import Bias


class SkewSteps(NamedTuple):
    """The tensors that `relative_to_absolute` passes through, in order."""

    padded: Float[Tensor, "*batch n 2n"]
    flattened: Float[Tensor, "*batch 2nn"]
    extended: Float[Tensor, "*batch 2nn+n-1"]
    reshaped: Float[Tensor, "*batch n+1 2n-1"]
    result: Float[Tensor, "*batch n n"]


def relative_to_absolute(scores: Float[Tensor, "*batch n offsets"]) -> Float[Tensor, "*batch n n"]:
    """From scores by offset to scores by key: result[i, j] = scores[i, j - i + n - 1].

    Column c of the 2n - 1 is the offset c - (n - 1) from query to key, so row i needs the n columns
    from n - 1 - i on: every row starts one column further left than the row above. Padding and
    reshaping do that without a gather; `relative_to_absolute_steps` shows how. (The "skewing" of
    Huang 2018, "Music Transformer", with offsets in both directions.)

    Args:
        scores: (batch, heads, n, 2n - 1), or any other leading axes.
    """
    return relative_to_absolute_steps(scores).result


def relative_to_absolute_steps(scores: Float[Tensor, "*batch n offsets"]) -> SkewSteps:
    """The skew of `relative_to_absolute`, step by step.

    1. padded: a column of zeros on the right makes rows 2n long.
    2. flattened: the rows in one line; entry (i, c) is at 2n i + c.
    3. extended: n - 1 zeros at the end, for a length of (n + 1)(2n - 1).
    4. reshaped: cut again into rows of 2n - 1, one shorter than before. Row i now starts i entries
       earlier, so column c of row i has moved to column c + i.
    5. result: the first n rows and last n columns. Column n - 1 + j of row i came from c = j - i + n - 1.

    Raises:
        ValueError: if scores are not a floating-point tensor, or its last axis is not 2n - 1 long.
    """
    check_tensors(scores=scores)
    n = scores.shape[-2] if scores.dim() >= 2 else 0
    if n < 1 or scores.shape[-1] != 2 * n - 1:
        raise ValueError(f"scores: expected (..., n, 2n - 1) with n at least 1, got shape {tuple(scores.shape)}")
    padded = F.pad(scores, (0, 1))
    flattened = rearrange(padded, "... n width -> ... (n width)")
    extended = F.pad(flattened, (0, n - 1))
    reshaped = rearrange(extended, "... (rows offsets) -> ... rows offsets", offsets=2 * n - 1)
    return SkewSteps(padded, flattened, extended, reshaped, reshaped[..., :n, n - 1 :])


def clipped_offsets(num_tokens: int, max_distance: int) -> Int[Tensor, "n n"]:
    """clip(j - i, -k, k) + k: which of 2k + 1 vectors query i and key j use (Shaw 2018, section 3.2).

    Beyond k = max_distance tokens all offsets share a vector; with 0 all offsets share one.

    Raises:
        ValueError: if num_tokens is not a positive whole number, or max_distance not a whole number from 0 on.
    """
    check_whole(num_tokens=num_tokens)
    return _clip(relative_positions(num_tokens, num_tokens), max_distance)


class RelativePositionEmbedding1d(nn.Module, PositionScheme):
    """Scores q_i . r_(j - i), with one learned vector r for each offset from query i to key j.

    n tokens have 2n - 1 offsets. Row c of the table `weight` is for the offset c - (n - 1): for n = 4,
    rows 0 .. 6 are -3 .. +3. The scores are added to q_i . k_j before the division
    (Shaw 2018, equation 5): softmax((Q K^T + scores) / sqrt(d)), or `attend(..., bias=scores / sqrt(d))`.

    Args:
        num_tokens: number n of tokens.
        head_dim: width d of a head.
        num_heads: None for one table (rows, head_dim) that all heads share; a number of heads for a
            table of its own for each, (num_heads, rows, head_dim). Both start at N(0, 1 / head_dim).
        max_distance: None for every offset; k for 2k + 1 rows, offsets clipped to -k .. k (Shaw 2018, section 3.2).

    Raises:
        ValueError: if a size is not a positive whole number, or max_distance not a whole number from 0 on.
    """

    offset_rows: Int[Tensor, " offsets"]

    def __init__(
        self, num_tokens: int, head_dim: int, num_heads: int | None = None, *, max_distance: int | None = None
    ) -> None:
        super().__init__()
        check_whole(num_tokens=num_tokens, head_dim=head_dim)
        if num_heads is not None:
            check_whole(num_heads=num_heads)
        heads = () if num_heads is None else (num_heads,)
        reach = num_tokens - 1 if max_distance is None else max_distance
        offset_rows = _clip(torch.arange(-num_tokens + 1, num_tokens), reach)
        self.num_tokens = num_tokens
        self.head_dim = head_dim
        self.num_heads = num_heads
        self.max_distance = max_distance
        self.weight = nn.Parameter(head_dim**-0.5 * torch.randn(*heads, 2 * reach + 1, head_dim))
        self.register_buffer("offset_rows", offset_rows, persistent=False)

    def forward(self, q: Float[Tensor, "batch heads n d"]) -> Float[Tensor, "batch heads n n"]:
        """Entry (i, j) is q_i . r_(j - i), not yet divided by sqrt(d)."""
        check_queries(q, self.num_tokens, self.head_dim, self.num_heads)
        check_like("q", q, self.weight)
        table = self.weight[..., self.offset_rows, :]
        return relative_to_absolute(q @ table.transpose(-2, -1))

    def bias(self, queries: Float[Tensor, "batch heads queries d"], num_keys: int) -> Bias:
        """q_i . r_(j - i) / sqrt(d) for queries that are the last of the keys, each offset looked up in the table.

        With max_distance there may be any number of keys: beyond it all offsets share a vector.

        Raises:
            ValueError: if queries do not fit the table or outnumber the keys, or offsets were not learned.
        """
        check_queries(queries, None, self.head_dim, self.num_heads)
        check_like("queries", queries, self.weight)
        if self.max_distance is None:
            check_learned(num_keys, self.num_tokens)
        reach = self.num_tokens - 1 if self.max_distance is None else self.max_distance
        rows = _clip(relative_positions(queries.shape[2], num_keys, queries.device), reach)
        by_offset = queries @ self.weight.mT * self.head_dim**-0.5
        return by_offset.gather(-1, rows.expand(*by_offset.shape[:3], num_keys))


def _clip(offsets: Int[Tensor, "*shape"], max_distance: int) -> Int[Tensor, "*shape"]:
    check_whole(0, max_distance=max_distance)
    return offsets.clamp(-max_distance, max_distance) + max_distance


def _cost(sizes: SchemeSizes, reach: int) -> SchemeCost:
    """t (2k + 1) w learned, a vector for each offset of reach k in each of t tables; h n (2n - 1) scores by offset."""
    learned = (sizes.tables or 1) * (2 * reach + 1) * sizes.head_dim
    return SchemeCost.learned(learned, sizes.scores_by_offset(sizes.num_tokens))


RELATIVE = SchemeEntry(
    "relative",
    order=4,
    formula=r"\frac{q_i \cdot k_j + q_i \cdot r_{j - i}}{\sqrt{d}}",
    enters="scores",
    depends_on="offset",
    extrapolates=False,
    cost=lambda sizes: _cost(sizes, sizes.num_tokens - 1),
    make=lambda sizes: RelativePositionEmbedding1d(sizes.num_tokens, sizes.head_dim, sizes.tables),
    seed=5,
    code=(RelativePositionEmbedding1d, relative_to_absolute, relative_to_absolute_steps),
)

SHAW = SchemeEntry(
    "shaw",
    order=5,
    formula=r"r_{\mathrm{clip}(j - i,\, -k,\, k)}",
    enters="scores",
    depends_on="offset",
    extrapolates=True,
    cost=lambda sizes: _cost(sizes, sizes.max_distance),  # Shaw 2018, section 3.2
    make=lambda sizes: RelativePositionEmbedding1d(
        sizes.num_tokens, sizes.head_dim, sizes.tables, max_distance=sizes.max_distance
    ),
    seed=6,
    task_name="relative",
)


class RelativePositionEmbedding2d(nn.Module, PositionScheme):
    """Scores q_i . (r_(row offset) + c_(column offset)) between the tokens of a height x width grid.

    A grid has (2 height - 1)(2 width - 1) offsets; factored into rows and columns, 2 height - 1 and
    2 width - 1 vectors are enough (Srinivas 2021, "Bottleneck Transformers", figure 4). Tokens
    are row-major, as patches of a picture are: token i is in row i // width, column i % width.

    Args:
        height, width: sides of the grid; they may differ.
        head_dim: width of a head.
        num_heads: None for tables that all heads share; a number of heads for tables of its own for each.

    Raises:
        ValueError: if a size is not a positive whole number.
    """

    def __init__(self, height: int, width: int, head_dim: int, num_heads: int | None = None) -> None:
        super().__init__()
        check_whole(height=height, width=width)
        self.height = height
        self.width = width
        self.rows = RelativePositionEmbedding1d(height, head_dim, num_heads)
        self.columns = RelativePositionEmbedding1d(width, head_dim, num_heads)

    def forward(self, q: Float[Tensor, "batch heads tokens d"]) -> Float[Tensor, "batch heads tokens tokens"]:
        """Entry (i, j) is q_i . (r_(row of j - row of i) + c_(column of j - column of i)), not divided by sqrt(d)."""
        check_queries(q, self.height * self.width, self.rows.head_dim, self.rows.num_heads)
        grid = rearrange(q, "b h (row col) d -> b h row col d", row=self.height)
        # Along a column only the row changes, along a row only the column: each is a line of tokens.
        by_row = self.rows(rearrange(grid, "b h row col d -> (b col) h row d"))
        by_column = self.columns(rearrange(grid, "b h row col d -> (b row) h col d"))
        by_row = rearrange(by_row, "(b col) h row key_row -> b h row col key_row 1", col=self.width)
        by_column = rearrange(by_column, "(b row) h col key_col -> b h row col 1 key_col", row=self.height)
        scores: Float[Tensor, "b h row col key_row key_col"] = by_row + by_column
        return rearrange(scores, "b h row col key_row key_col -> b h (row col) (key_row key_col)")

    def bias(self, queries: Float[Tensor, "batch heads tokens d"], num_keys: int) -> Bias:
        """The scores divided by sqrt(d), between all tokens of the grid.

        Raises:
            ValueError: if queries or keys are not the height * width tokens of the grid.
        """
        if num_keys != self.height * self.width:
            raise ValueError(f"num_keys: expected {self.height} x {self.width} tokens, got {num_keys}")
        return self(queries) * self.rows.head_dim**-0.5


def _grid_cost(sizes: SchemeSizes) -> SchemeCost:
    """t (2 height - 1 + 2 width - 1) w learned, for offsets of rows and of columns; their scores and the sum."""
    vectors = (2 * sizes.height - 1) + (2 * sizes.width - 1)
    by_offset = sizes.scores_by_offset(sizes.height) + sizes.scores_by_offset(sizes.width)
    return SchemeCost.learned((sizes.tables or 1) * vectors * sizes.head_dim, by_offset + sizes.score_map)


RELATIVE_2D = SchemeEntry(
    "relative-2d",
    order=6,
    formula=r"\frac{q_i \cdot \left(r_{\Delta y} + c_{\Delta x}\right)}{\sqrt{d}}",
    enters="scores",
    depends_on="grid-offset",
    extrapolates=False,
    cost=_grid_cost,
    make=lambda sizes: RelativePositionEmbedding2d(sizes.height, sizes.width, sizes.head_dim, sizes.tables),
    std=0.5**0.5,  # two terms, together of variance 1
    seed=7,
    code=(RelativePositionEmbedding2d,),
)
