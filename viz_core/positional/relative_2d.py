"""Relative positions on a grid: how many rows down and how many columns across."""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.positional.entry import SchemeCost, SchemeEntry, SchemeSizes
from viz_core.positional.relative import RelativePositionEmbedding1d
from viz_core.positional.scheme import PositionScheme, check_queries
from viz_core.trace.arguments import check_whole
from viz_core.trace.weights import Bias


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


def _cost(sizes: SchemeSizes) -> SchemeCost:
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
    cost=_cost,
    make=lambda sizes: RelativePositionEmbedding2d(sizes.height, sizes.width, sizes.head_dim, sizes.tables),
    std=0.5**0.5,  # two terms, together of variance 1
    seed=7,
    code=(RelativePositionEmbedding2d,),
)
