"""The Transformer (Vaswani 2017), post-norm, by the book's names and state-dict keys."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.multi_head import KeysValues, MultiHeadAttention
from viz_core.models.encoder_decoder import Decoder, TokenReader
from viz_core.positional.sinusoidal import PositionalEncoding
from viz_core.trace import name_sites


class AddNorm(nn.Module):
    """LayerNorm(X + dropout(Y)): a residual connection, then normalisation (Vaswani 2017, section 3.1)."""

    def __init__(self, norm_shape: int | list[int], dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.ln = nn.LayerNorm(norm_shape)

    def forward(self, X: Float[Tensor, "*batch d"], Y: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Raises ValueError if X and Y differ in shape."""
        if X.shape != Y.shape:
            raise ValueError(f"expected X and Y of one shape, got {tuple(X.shape)} and {tuple(Y.shape)}")
        return self.ln(X + self.dropout(Y))


class PositionWiseFFN(nn.Module):
    """W_2 relu(W_1 x + b_1) + b_2, the same at every position (Vaswani 2017, equation 2)."""

    def __init__(self, ffn_num_hiddens: int, ffn_num_outputs: int, ffn_num_inputs: int | None = None) -> None:
        super().__init__()
        self.dense1 = nn.Linear(ffn_num_inputs or ffn_num_outputs, ffn_num_hiddens)
        self.relu = nn.ReLU()
        self.dense2 = nn.Linear(ffn_num_hiddens, ffn_num_outputs)

    def forward(self, X: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return self.dense2(self.relu(self.dense1(X)))


class TransformerEncoderBlock(nn.Module):
    """Self-attention, add and norm, feed-forward, add and norm."""

    def __init__(
        self,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias)
        self.addnorm1 = AddNorm(num_hiddens, dropout)
        self.ffn = PositionWiseFFN(ffn_num_hiddens, num_hiddens)
        self.addnorm2 = AddNorm(num_hiddens, dropout)

    def forward(
        self, X: Float[Tensor, "batch n d"], valid_lens: Int[Tensor, "batch"] | Int[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n d"]:
        Y = self.addnorm1(X, self.attention(X, X, X, valid_lens))
        return self.addnorm2(Y, self.ffn(Y))


class TransformerEncoder(TokenReader):
    """Embedding times sqrt(d), plus position, through num_blks encoder blocks (Vaswani 2017, figure 1, left)."""

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None:
        super().__init__(vocab_size, num_hiddens, math.sqrt(num_hiddens))  # as large as the positions added to them
        self.num_hiddens = num_hiddens
        self.pos_encoding = PositionalEncoding(num_hiddens, dropout)
        self.blks = nn.Sequential()
        for i in range(num_blks):
            block = TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias)
            self.blks.add_module(f"block{i}", block)
        name_sites(self, "encoder")

    @property
    def blocks(self) -> tuple[TransformerEncoderBlock, ...]:
        """The blocks, first to last."""
        return cast(tuple[TransformerEncoderBlock, ...], tuple(self.blks))

    def forward(
        self, X: Int[Tensor, "batch n"], valid_lens: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch n d"]:
        """Encode token ids; keys past a row's valid length are not looked at.

        Raises:
            ValueError: if n is longer than the table of positions.
        """
        H = self.pos_encoding(self.embed(X))
        for blk in self.blks:
            H = blk(H, valid_lens)
        return H


class BlockCache(NamedTuple):
    """What one decoder block keeps between steps: its own keys and values, and the encoder's."""

    own: KeysValues
    cross: KeysValues

    @property
    def num_steps(self) -> int:
        return self.own.keys.shape[2]


class DecoderState(NamedTuple):
    """What decoding carries from step to step; `forward` returns a new one and changes none."""

    enc_outputs: Float[Tensor, "batch keys d"]
    enc_valid_lens: Int[Tensor, "batch"] | None
    caches: tuple[BlockCache | None, ...]

    @property
    def num_steps(self) -> int:
        """Target steps taken so far."""
        first = self.caches[0] if self.caches else None
        return 0 if first is None else first.num_steps

    def select(self, rows: Int[Tensor, "rows"]) -> DecoderState:
        """The state of these batch rows, in this order: what beam search keeps, or a row repeated."""
        caches = tuple(
            cache and BlockCache(*(KeysValues(*(t[rows] for t in pair)) for pair in cache)) for cache in self.caches
        )
        lens = self.enc_valid_lens
        return DecoderState(self.enc_outputs[rows], None if lens is None else lens[rows], caches)


class TransformerDecoderBlock(nn.Module):
    """Causal self-attention, attention to the encoder, feed-forward, each with add and norm."""

    def __init__(
        self,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        i: int = 0,
        use_bias: bool = False,
    ) -> None:
        super().__init__()
        self.i = i
        self.attention1 = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias)
        self.addnorm1 = AddNorm(num_hiddens, dropout)
        self.attention2 = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias)
        self.addnorm2 = AddNorm(num_hiddens, dropout)
        self.ffn = PositionWiseFFN(ffn_num_hiddens, num_hiddens)
        self.addnorm3 = AddNorm(num_hiddens, dropout)

    def forward(
        self, X: Float[Tensor, "batch n d"], state: DecoderState
    ) -> tuple[Float[Tensor, "batch n d"], DecoderState]:
        """Take n more steps; causal whenever n > 1, in training and in evaluation alike."""
        enc_outputs, enc_valid_lens, caches = state
        cache = caches[self.i]
        own = self.attention1.project(X, X)
        if cache is None:
            cross = self.attention2.project(enc_outputs, enc_outputs)
        else:
            own = KeysValues(*(torch.cat(pair, dim=2) for pair in zip(cache.own, own, strict=True)))
            cross = cache.cross
        Y = self.addnorm1(X, self.attention1.attend_to(X, own, causal=True))
        Z = self.addnorm2(Y, self.attention2.attend_to(Y, cross, enc_valid_lens))
        kept = (*caches[: self.i], BlockCache(own, cross), *caches[self.i + 1 :])
        return self.addnorm3(Z, self.ffn(Z)), DecoderState(enc_outputs, enc_valid_lens, kept)


class TransformerDecoder(Decoder):
    """num_blks decoder blocks and a linear layer to the vocabulary (Vaswani 2017, figure 1, right)."""

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None:
        super().__init__(vocab_size, num_hiddens, math.sqrt(num_hiddens))
        self.num_hiddens = num_hiddens
        self.num_blks = num_blks
        self.pos_encoding = PositionalEncoding(num_hiddens, dropout)
        self.blks = nn.Sequential()
        for i in range(num_blks):
            block = TransformerDecoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, i, use_bias)
            self.blks.add_module(f"block{i}", block)
        self.dense = nn.Linear(num_hiddens, vocab_size)
        name_sites(self, "decoder")

    def init_state(
        self, enc_outputs: Float[Tensor, "batch keys d"], enc_valid_lens: Int[Tensor, "batch"] | None = None
    ) -> DecoderState:
        """The state before the first step."""
        return DecoderState(enc_outputs, enc_valid_lens, (None,) * self.num_blks)

    def hidden(self, X: Int[Tensor, "batch n"], state: DecoderState) -> tuple[Float[Tensor, "batch n d"], DecoderState]:
        """Output of the last block for each of these n tokens, and the state with them taken in.

        Raises:
            ValueError: if the steps run past the table of positions.
        """
        H = self.pos_encoding(self.embed(X), offset=state.num_steps)
        for blk in self.blks:
            H, state = blk(H, state)
        return H, state
