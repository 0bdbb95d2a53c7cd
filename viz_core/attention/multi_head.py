"""Multi-head attention: several attentions in parallel, each on its own projection."""

from typing import NamedTuple

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.masking import all_of, length_mask, sum_of, window_mask
from viz_core.attention.projection import check_width
from viz_core.positional.entry import Positions, PositionScheme, scheme_of
from viz_core.trace import attend, site_of
from viz_core.trace.arguments import check_device, check_mask_and_bias, check_number, check_positive_number, check_whole
from viz_core.trace.weights import Bias, Mask


class KeysValues(NamedTuple):
    """Keys and values after projection, split into heads, as a decoder caches them."""

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
        num_key_heads: heads of keys and values, each for num_heads / num_key_heads neighbouring heads of queries:
            grouped queries (Ainslie 2023, section 2.2). num_heads unless given.
        softcap: scaled scores s become c tanh(s / c) (Gemma 2, section 2).
        window: a query attends to keys less than this many steps away, itself included;
            under a causal mask these are the last `window` keys, as in Mistral.
        positions: the scheme within this attention: Rotary(), ALiBi(), T5RelativeBias(...), ...

    For positions and window the queries are the last of the keys: the same tokens, or the newest steps of a decoder.

    Raises:
        ValueError: if a size, a number of heads or the window is not a positive whole number; num_heads does not divide
            num_hiddens, or num_key_heads num_heads; softcap is not positive, or dropout not from 0 to 1; positions are
            not a scheme.
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
        num_key_heads: int | None = None,
        softcap: float | None = None,
        window: int | None = None,
        positions: Positions | None = None,
    ) -> None:
        super().__init__()
        check_whole(num_hiddens=num_hiddens, num_heads=num_heads)
        check_number(0, 1, dropout=dropout)
        query_size, key_size, value_size = (
            num_hiddens if size is None else size for size in (query_size, key_size, value_size)
        )
        key_heads = num_heads if num_key_heads is None else num_key_heads
        check_whole(query_size=query_size, key_size=key_size, value_size=value_size, num_key_heads=key_heads)
        if window is not None:
            check_whole(window=window)
        if softcap is not None:
            check_positive_number(softcap=softcap)
        if num_hiddens % num_heads:
            raise ValueError(f"num_heads: expected a divisor of num_hiddens={num_hiddens}, got {num_heads}")
        if num_heads % key_heads:
            raise ValueError(f"num_key_heads: expected a divisor of num_heads={num_heads}, got {num_key_heads}")
        self.num_heads = num_heads
        self.dropout = dropout
        self.softcap = softcap
        self.window = window
        self.positions = scheme_of(positions) or PositionScheme()
        self.head_dim = num_hiddens // num_heads
        self.W_q = nn.Linear(query_size, num_hiddens, bias=bias)
        self.W_k = nn.Linear(key_size, key_heads * self.head_dim, bias=bias)
        self.W_v = nn.Linear(value_size, key_heads * self.head_dim, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_size"],
        keys: Float[Tensor, "batch keys key_size"],
        values: Float[Tensor, "batch keys value_size"],
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None = None,
        *,
        causal: bool = False,
        mask: Mask | None = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch queries num_hiddens"]:
        """W_o [head_1; ...; head_h] + b_o: project, split into heads, attend, concatenate, project back.

        Args:
            valid_lens: number of keys, from the first on, that each row of the batch or each query attends to.
            causal, mask, bias: as in `attend`; a key must be allowed by all of them.
        """
        return self.attend_to(queries, self.project(keys, values), valid_lens, causal=causal, mask=mask, bias=bias)

    def project(
        self, keys: Float[Tensor, "batch keys key_size"], values: Float[Tensor, "batch keys v"], start: int = 0
    ) -> KeysValues:
        """Return W_k K and W_v V, split into heads; the keys have positions start, start + 1, ..."""
        check_width("keys", keys, self.W_k)
        check_width("values", values, self.W_v)
        return KeysValues(self.positions.rotate(self._split(self.W_k(keys)), start), self._split(self.W_v(values)))

    def attend_to(
        self,
        queries: Float[Tensor, "batch queries query_size"],
        projected: KeysValues,
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None = None,
        *,
        causal: bool = False,
        mask: Mask | None = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch queries num_hiddens"]:
        """Return W_o [head_1; ...; head_h] for projected keys and values, as in a decoder with a cache.

        Raises:
            ValueError: if valid_lens, mask or bias do not fit queries and keys.
        """
        check_width("queries", queries, self.W_q)
        batch, num_queries, num_keys = *queries.shape[:2], projected.keys.shape[2]
        Q = self.positions.rotate(self._split(self.W_q(queries)), num_keys - num_queries)
        check_device(queries=queries, valid_lens=valid_lens, mask=mask, bias=bias)
        if mask is not None or bias is not None:  # before they are joined with the layer's own
            check_mask_and_bias(mask, bias, (batch, self.num_heads, num_queries, num_keys))
        lengths = None if valid_lens is None else length_mask(valid_lens, batch, num_queries, num_keys)[:, None]
        window = None if self.window is None else window_mask(num_queries, num_keys, self.window, Q.device)[None, None]
        heads = attend(
            Q,
            projected.keys,
            projected.values,
            mask=all_of(mask, lengths, window),
            bias=sum_of(bias, self.positions.bias(Q, num_keys)),
            causal=causal,
            softcap=self.softcap,
            dropout=self.dropout if self.training else 0.0,
            site=site_of(self),
        )
        return self.W_o(rearrange(heads, "batch heads n d -> batch n (heads d)"))

    def _split(self, projected: Float[Tensor, "batch n width"]) -> Float[Tensor, "batch heads n d"]:
        return rearrange(projected, "batch n (heads d) -> batch heads n d", d=self.head_dim)
