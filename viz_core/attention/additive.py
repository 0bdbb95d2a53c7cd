"""Attention with one head as a layer: additive, and scaled dot-product."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.masking import length_mask, masked_softmax, valid_keys
from viz_core.attention.projection import check_width
from viz_core.trace import attend, record_weights, site_of
from viz_core.trace.arguments import check_axes, check_device, check_number, check_tensors, check_whole


class AdditiveAttention(nn.Module):
    """softmax(a) V with a(q, k) = w_v^T tanh(W_q q + W_k k) (Bahdanau 2015, appendix A.1.2).

    Queries and keys may differ in width: both are projected to num_hiddens before they are added.

    Args:
        query_size, key_size: widths of queries and keys.
        num_hiddens: width of their projections.
        dropout: probability of dropping a weight while training, 0 to 1.

    Raises:
        ValueError: if a size is not a positive whole number, or dropout is out of range.
    """

    def __init__(self, query_size: int, key_size: int, num_hiddens: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_whole(query_size=query_size, key_size=key_size, num_hiddens=num_hiddens)
        check_number(0, 1, dropout=dropout)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_size"],
        keys: Float[Tensor, "batch keys key_size"],
        values: Float[Tensor, "batch keys v"],
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None = None,
    ) -> Float[Tensor, "batch queries v"]:
        """sum_j a_ij v_j with a_i the softmax of a(q_i, k_j) over the valid keys; zeros for a valid length of 0.

        (Bahdanau 2015, section 3.1.)

        Raises:
            ValueError: if queries, keys and values are not floating-point tensors whose shapes fit together, of the
                layer's type and device, or valid_lens does not fit them.
        """
        check_width("keys", keys, self.W_k)
        check_tensors(values=values)
        check_axes("batch n v", values=values)
        check_device(keys=keys, values=values)
        if values.shape[:2] != keys.shape[:2]:
            raise ValueError(f"expected one value for each key, got shapes {tuple(keys.shape)}, {tuple(values.shape)}")
        weights = self.weigh(queries, self.W_k(keys), valid_lens)
        tokens = valid_keys(valid_lens, keys.shape[1])
        record_weights(weights[:, None], site_of(self), values[:, None], tokens)
        return self.pool(weights, values)

    def score(
        self, queries: Float[Tensor, "batch queries query_size"], projected: Float[Tensor, "batch keys num_hiddens"]
    ) -> Float[Tensor, "batch queries keys"]:
        """Return w_v^T tanh(W_q q_i + W_k k_j) for every pair, from projected keys.

        Raises:
            ValueError: if the queries are not (batch, n, query_size), or the keys not (batch, n, num_hiddens).
        """
        check_width("queries", queries, self.W_q)
        check_tensors(projected=projected)
        check_axes("batch n num_hiddens", projected=projected)
        if queries.shape[0] != projected.shape[0] or projected.shape[2] != self.w_v.in_features:
            shapes = f"{tuple(queries.shape)} and {tuple(projected.shape)}"
            raise ValueError(
                f"expected projected keys of width {self.w_v.in_features} for each batch row, got {shapes}"
            )
        features = torch.tanh(self.W_q(queries)[:, :, None] + projected[:, None])  # (batch, queries, keys, hiddens)
        return self.w_v(features).squeeze(-1)

    def weigh(
        self,
        queries: Float[Tensor, "batch queries query_size"],
        projected: Float[Tensor, "batch keys num_hiddens"],
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None = None,
    ) -> Float[Tensor, "batch queries keys"]:
        """a_ij = exp(s_ij) / sum_l exp(s_il) over the valid keys, for scores s from projected keys.

        A decoder projects W_k K once and computes weights at each step.
        """
        return masked_softmax(self.score(queries, projected).float(), valid_lens)

    def pool(
        self, weights: Float[Tensor, "batch queries keys"], values: Float[Tensor, "batch keys v"]
    ) -> Float[Tensor, "batch queries v"]:
        """Return sum_j a_ij v_j, with dropout of the weights while training (Bahdanau 2015, equation 5)."""
        return torch.bmm(self.dropout(weights).to(values.dtype), values)


class DotProductAttention(nn.Module):
    """softmax(Q K^T / sqrt(d)) V over the valid keys (Vaswani 2017, equation 1).

    Args:
        dropout: probability of dropping a weight while training, 0 to 1.

    Raises:
        ValueError: if dropout is out of range.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        check_number(0, 1, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        queries: Float[Tensor, "batch queries d"],
        keys: Float[Tensor, "batch keys d"],
        values: Float[Tensor, "batch keys v"],
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None = None,
    ) -> Float[Tensor, "batch queries v"]:
        """softmax(Q K^T / sqrt(d)) V over the valid keys (Vaswani 2017, equation 1); zeros for a valid length of 0."""
        check_tensors(queries=queries, keys=keys, values=values)
        check_axes("batch n width", queries=queries, keys=keys, values=values)
        check_device(queries=queries, valid_lens=valid_lens)
        mask = None
        if valid_lens is not None:
            mask = length_mask(valid_lens, queries.shape[0], queries.shape[1], keys.shape[1])[:, None]
        return attend(
            queries[:, None],
            keys[:, None],
            values[:, None],
            mask=mask,
            dropout=self.dropout.p if self.training else 0.0,
            site=site_of(self),
        )[:, 0]
