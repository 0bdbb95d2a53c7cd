"""Learned absolute positions: one trained vector for each position."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.positional.entry import PositionScheme, SchemeCost, SchemeEntry, check_learned, check_queries, check_span
from viz_core.trace.arguments import check_device, check_like, check_whole
from viz_core.trace.weights import Bias


class LearnedPositionalEmbedding(nn.Module):
    """X + E, with one learned row of E for each position, as in BERT and ViT.

    (Devlin 2019, figure 2; Dosovitskiy 2021, equation 1.) The parameter `weight` (max_len, num_hiddens)
    is named and shaped as in `nn.Embedding`, so that the position embeddings of a BERT load with
    `strict=True`. It starts at N(0, 0.02^2), as in both.

    Args:
        max_len: number of positions; later ones have no vector.
        num_hiddens: width of the embeddings.

    Raises:
        ValueError: if a size is not a positive whole number.
    """

    def __init__(self, max_len: int, num_hiddens: int) -> None:
        super().__init__()
        check_whole(max_len=max_len, num_hiddens=num_hiddens)
        self.weight = nn.Parameter(0.02 * torch.randn(max_len, num_hiddens))

    def forward(self, X: Float[Tensor, "batch n num_hiddens"], offset: int = 0) -> Float[Tensor, "batch n num_hiddens"]:
        """X + E[offset : offset + n]; a decoder with a cache passes its number of steps as offset.

        Raises:
            ValueError: if X is not a floating-point tensor of this width and device, offset is not a whole number from
                0 on, or the last position lies past max_len.
        """
        check_span(X, offset, *self.weight.shape)
        check_device(X=X, weight=self.weight)
        return X + self.weight[offset : offset + X.shape[1]]


class AbsolutePositionEmbedding1d(nn.Module, PositionScheme):
    """Scores q_i . e_j, with one learned vector e_j for each key position, shared by all heads.

    Positions enter inside attention, not at its input: the scores are added to q_i . k_j before the
    softmax (AI Summer, "How positional embeddings work in self-attention").

    Args:
        num_tokens: number n of tokens.
        head_dim: width d of a head. `weight` is (num_tokens, head_dim) and starts at N(0, 1 / head_dim).

    Raises:
        ValueError: if a size is not a positive whole number.
    """

    def __init__(self, num_tokens: int, head_dim: int) -> None:
        super().__init__()
        check_whole(num_tokens=num_tokens, head_dim=head_dim)
        self.weight = nn.Parameter(head_dim**-0.5 * torch.randn(num_tokens, head_dim))

    def forward(self, q: Float[Tensor, "batch heads n d"]) -> Float[Tensor, "batch heads n n"]:
        """Entry (i, j) is q_i . e_j, not yet divided by sqrt(d)."""
        check_queries(q, *self.weight.shape)
        check_like("q", q, self.weight)
        return q @ self.weight.T

    def bias(self, queries: Float[Tensor, "batch heads queries d"], num_keys: int) -> Bias:
        """q_i . e_j / sqrt(d) for any queries and the first num_keys positions.

        Raises:
            ValueError: if the queries have another width, or there are more than num_tokens keys.
        """
        check_queries(queries, None, self.weight.shape[1])
        check_like("queries", queries, self.weight)
        check_learned(num_keys, self.weight.shape[0])
        return queries @ self.weight[:num_keys].T * self.weight.shape[1] ** -0.5


LEARNED = SchemeEntry(
    "learned",
    order=2,
    formula=r"(x_i + p_i)^\top W_q^\top W_k (x_j + p_j)",
    enters="input",
    depends_on="position",
    extrapolates=False,
    # n d learned: a table, added to the input (Devlin 2019, Dosovitskiy 2021).
    cost=lambda sizes: SchemeCost.learned(sizes.num_tokens * sizes.num_hiddens),
    make_input=LearnedPositionalEmbedding,
    std=0.5**0.5,  # the variance of sinusoids is 1/2
    seed=3,
    task_name="learned",
    code=(LearnedPositionalEmbedding,),
)

ABSOLUTE = SchemeEntry(
    "absolute",
    order=3,
    formula=r"\frac{q_i \cdot k_j + q_i \cdot e_j}{\sqrt{d}}",
    enters="scores",
    depends_on="position",
    extrapolates=False,
    # n w learned, a vector of a head's width w for each key, shared by heads; h n^2 scores q . e.
    cost=lambda sizes: SchemeCost.learned(sizes.num_tokens * sizes.head_dim, sizes.score_map),
    make=lambda sizes: AbsolutePositionEmbedding1d(sizes.num_tokens, sizes.head_dim),
    seed=4,
    code=(AbsolutePositionEmbedding1d,),
)
