"""Multi-head attention: several attentions side by side, each on its own projection."""

from __future__ import annotations

from typing import NamedTuple

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.masking import length_mask
from viz_core.attention.projection import check_width
from viz_core.trace import attend, site_of


class KeysValues(NamedTuple):
    """Keys and values after projection, split into heads: what a decoder caches."""

    keys: Float[Tensor, "batch heads keys d"]
    values: Float[Tensor, "batch heads keys d"]


class MultiHeadAttention(nn.Module):
    """W_o [head_1; ...; head_h] with head_i = attention(W_q^i Q, W_k^i K, W_v^i V) (Vaswani 2017, section 3.2.2).

    Args:
        num_hiddens: width after each projection; num_heads must divide it.
        num_heads: number of heads, each num_hiddens / num_heads wide.
        dropout: probability of dropping a weight while training.
        bias: whether the four projections have biases.
        query_size, key_size, value_size: widths of the inputs where they are not num_hiddens.

    Raises:
        ValueError: if num_heads does not divide num_hiddens.
    """

    def __init__(
        self,
        num_hiddens: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = False,
        *,
        query_size: int | None = None,
        key_size: int | None = None,
        value_size: int | None = None,
    ) -> None:
        super().__init__()
        if num_heads < 1 or num_hiddens % num_heads:
            raise ValueError(f"num_heads: expected a divisor of num_hiddens={num_hiddens}, got {num_heads}")
        self.num_heads = num_heads
        self.dropout = dropout
        self.W_q = nn.Linear(query_size or num_hiddens, num_hiddens, bias=bias)
        self.W_k = nn.Linear(key_size or num_hiddens, num_hiddens, bias=bias)
        self.W_v = nn.Linear(value_size or num_hiddens, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_size"],
        keys: Float[Tensor, "batch keys key_size"],
        values: Float[Tensor, "batch keys value_size"],
        valid_lens: Int[Tensor, "batch"] | Int[Tensor, "batch queries"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch queries num_hiddens"]:
        """Project, split into heads, attend, concatenate, project back.

        Raises:
            ValueError: if the shapes do not fit together.
        """
        return self.attend_to(queries, self.project(keys, values), valid_lens, causal=causal)

    def project(self, keys: Float[Tensor, "batch keys key_size"], values: Float[Tensor, "batch keys v"]) -> KeysValues:
        """W_k K and W_v V, split into heads."""
        check_width("keys", keys, self.W_k)
        check_width("values", values, self.W_v)
        return KeysValues(self._split(self.W_k(keys)), self._split(self.W_v(values)))

    def attend_to(
        self,
        queries: Float[Tensor, "batch queries query_size"],
        projected: KeysValues,
        valid_lens: Int[Tensor, "batch"] | Int[Tensor, "batch queries"] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch queries num_hiddens"]:
        """Attend to keys and values that are projected already, as a decoder with a cache does."""
        check_width("queries", queries, self.W_q)
        mask = None
        if valid_lens is not None:
            mask = length_mask(valid_lens, queries.shape[0], queries.shape[1], projected.keys.shape[2])[:, None]
        heads = attend(
            self._split(self.W_q(queries)),
            projected.keys,
            projected.values,
            mask=mask,
            causal=causal,
            dropout=self.dropout if self.training else 0.0,
            site=site_of(self),
        )
        return self.W_o(rearrange(heads, "batch heads n d -> batch n (heads d)"))

    def _split(self, projected: Float[Tensor, "batch n num_hiddens"]) -> Float[Tensor, "batch heads n d"]:
        return rearrange(projected, "batch n (heads d) -> batch heads n d", heads=self.num_heads)
