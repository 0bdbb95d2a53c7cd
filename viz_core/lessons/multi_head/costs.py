"""What multi-head self-attention costs: numbers learned, multiplied and kept, by the number of heads."""

from typing import NamedTuple


class MultiHeadCost(NamedTuple):
    """Numbers in one layer, for one sequence, without biases."""

    parameters: int  # learned, in W_q, W_k, W_v and W_o
    projections: int  # multiplications in the four projections
    products: int  # multiplications in Q K^T and in weights times V
    weights: int  # attention weights, each with an exponential of its own

    @property
    def multiplications(self) -> int:
        """Of the projections and the products together."""
        return self.projections + self.products


def multi_head_cost(num_tokens: int, num_hiddens: int, num_heads: int, head_width: int | None = None) -> MultiHeadCost:
    """Cost of self-attention over n tokens of width d with h heads, each w wide (Vaswani 2017, section 3.2.2).

    parameters 4 d h w, projections 4 n d h w, products 2 n^2 h w, weights h n^2. With w = d / h,
    which is what the paper does, h leaves all but the last: 4 d^2, 4 n d^2 and 2 n^2 d.

    Args:
        head_width: w; d / h unless given.
    """
    together = num_heads * (num_hiddens // num_heads if head_width is None else head_width)
    return MultiHeadCost(
        parameters=4 * num_hiddens * together,
        projections=4 * num_tokens * num_hiddens * together,
        products=2 * num_tokens**2 * together,
        weights=num_heads * num_tokens**2,
    )


def divisors(number: int) -> list[int]:
    """Every whole number that divides a positive one, in order: the numbers of heads a width can be cut into."""
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]
