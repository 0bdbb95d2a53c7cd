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


def multi_head_cost(num_tokens: int, num_hiddens: int, num_heads: int) -> MultiHeadCost:
    """Cost of self-attention over n tokens of width d with h heads, each w wide (Vaswani 2017, section 3.2.2).

    parameters 4 d h w, projections 4 n d h w, products 2 n^2 h w, weights h n^2. With w = d / h,
    as in the paper, h leaves all but the last: 4 d^2, 4 n d^2 and 2 n^2 d.
    """
    n, d = num_tokens, num_hiddens
    return MultiHeadCost(4 * d * d, 4 * n * d * d, 2 * n * n * d, num_heads * n * n)


def divisors(number: int) -> list[int]:
    """Every whole number that divides a positive one, in order: the numbers of heads a width can be cut into."""
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]
