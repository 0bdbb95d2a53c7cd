"""The Transformer's decoder (Vaswani 2017), causal and with a cache, by the book's names and state-dict keys."""

import math
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.multi_head import KeysValues
from viz_core.models.encoder_decoder import Decoder
from viz_core.models.transformer import BOOK, AddNorm, BlockOptions, PositionWiseFFN, input_positions
from viz_core.trace import name_sites
from viz_core.trace.arguments import check_tensors, check_whole, described
from viz_core.trace.weights import Bias, Mask


class BlockCache(NamedTuple):
    """Cache of one decoder block: keys and values of self-attention, and those of the encoder's output."""

    own: KeysValues
    cross: KeysValues

    @property
    def num_steps(self) -> int:
        """Number of target steps so far."""
        return self.own.keys.shape[2]


class DecoderState(NamedTuple):
    """State of decoding; `forward` returns a new one and changes none."""

    enc_outputs: Float[Tensor, "batch keys d"]
    enc_valid_lens: Int[Tensor, " batch"] | None
    caches: tuple[BlockCache | None, ...]

    @property
    def num_steps(self) -> int:
        """Number of target steps so far."""
        first = self.caches[0] if self.caches else None
        return 0 if first is None else first.num_steps

    def select(self, rows: Int[Tensor, " rows"]) -> "DecoderState":
        """Return the state of these batch rows, in this order, as beam search selects them."""
        caches = tuple(
            cache and BlockCache(*(KeysValues(*(t[rows] for t in pair)) for pair in cache)) for cache in self.caches
        )
        lens = self.enc_valid_lens
        return DecoderState(self.enc_outputs[rows], None if lens is None else lens[rows], caches)


class TransformerDecoderBlock(nn.Module):
    """Causal self-attention, attention to the encoder, feed-forward, each with add and norm.

    (Vaswani 2017, section 3.1.)

    Args:
        i: index of the block, and of its cache in the state.
        options: what differs from the book's block. Positions and window are for self-attention alone: the encoder's
            tokens are another sequence.
    """

    def __init__(
        self,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        i: int = 0,
        use_bias: bool = False,
        *,
        options: BlockOptions = BOOK,
    ) -> None:
        super().__init__()
        self.i = i
        sizes, norm_first = (num_hiddens, num_heads, dropout, use_bias), bool(options.norm_first)
        self.attention1 = options.self_attention(*sizes)
        self.addnorm1 = AddNorm(num_hiddens, dropout, norm_first, options.norm)
        self.attention2 = options.cross_attention(*sizes)
        self.addnorm2 = AddNorm(num_hiddens, dropout, norm_first, options.norm)
        self.ffn = (options.ffn or PositionWiseFFN)(ffn_num_hiddens, num_hiddens)
        self.addnorm3 = AddNorm(num_hiddens, dropout, norm_first, options.norm)

    def forward(
        self, X: Float[Tensor, "batch n d"], state: DecoderState, *, mask: Mask | None = None, bias: Bias | None = None
    ) -> tuple[Float[Tensor, "batch n d"], DecoderState]:
        """Return the output of n more steps and the state after them.

        Y = LN(X + self(X)), Z = LN(Y + cross(Y, M)), then LN(Z + ffn(Z)). M is the encoder's output.
        Causal whenever n > 1, in training and in evaluation alike. Norms first as in `TransformerEncoderBlock`.

        Args:
            mask, bias: of the self-attention of these steps with themselves and earlier ones.

        Raises:
            ValueError: if X or the encoder's output are not floating-point tensors of the layer's width, type and
                device, their batches differ, or mask, bias or the encoder's valid lengths do not fit them.
        """
        if not isinstance(state, DecoderState):
            raise ValueError(f"state: expected that of init_state or of a step before, got {described(state)}")
        enc_outputs, enc_valid_lens, caches = state
        cache = caches[self.i]
        Z = self.addnorm1.branch(X)
        if cache is None:
            own = self.attention1.project(Z, Z)
            cross = self.attention2.project(enc_outputs, enc_outputs)
        else:
            new = self.attention1.project(Z, Z, start=cache.num_steps)
            own = KeysValues(*(torch.cat(pair, dim=2) for pair in zip(cache.own, new, strict=True)))
            cross = cache.cross
        X = self.addnorm1(X, self.attention1.attend_to(Z, own, causal=True, mask=mask, bias=bias))
        X = self.addnorm2(X, self.attention2.attend_to(self.addnorm2.branch(X), cross, enc_valid_lens))
        X = self.addnorm3(X, self.ffn(self.addnorm3.branch(X)))
        extended = (*caches[: self.i], BlockCache(own, cross), *caches[self.i + 1 :])
        return X, DecoderState(enc_outputs, enc_valid_lens, extended)


class TransformerDecoder(Decoder):
    """num_blks decoder blocks and a linear layer to the vocabulary (Vaswani 2017, figure 1, right).

    The arguments are those of `TransformerEncoder`. Block i is the sites "decoder.i.self" and "decoder.i.cross" of a
    trace. T5RelativeBias(bidirectional=False) is T5's here: a decoder attends to no key after the query.

    Raises:
        ValueError: as `TransformerEncoder`.
    """

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        use_bias: bool = False,
        *,
        options: BlockOptions = BOOK,
    ) -> None:
        check_whole(num_hiddens=num_hiddens)
        check_whole(0, num_blks=num_blks)
        super().__init__(vocab_size, num_hiddens, math.sqrt(num_hiddens))
        self.num_hiddens = num_hiddens
        self.num_blks = num_blks
        self.pos_encoding = input_positions(num_hiddens, dropout, options)
        self.blks = nn.Sequential()
        for i in range(num_blks):
            block = TransformerDecoderBlock(
                num_hiddens, ffn_num_hiddens, num_heads, dropout, i, use_bias, options=options
            )
            self.blks.add_module(f"block{i}", block)
        self.norm = options.norm(num_hiddens) if options.norm_first else nn.Identity()
        self.dense = nn.Linear(num_hiddens, vocab_size)
        name_sites(self, "decoder")

    @property
    def blocks(self) -> tuple[TransformerDecoderBlock, ...]:
        """The blocks, first to last."""
        return cast(tuple[TransformerDecoderBlock, ...], tuple(self.blks))

    def init_state(
        self, enc_outputs: Float[Tensor, "batch keys d"], enc_valid_lens: Int[Tensor, " batch"] | None = None
    ) -> DecoderState:
        """Return the state before the first step.

        Raises:
            ValueError: unless enc_outputs is a floating-point tensor (batch, keys, num_hiddens).
        """
        check_tensors(enc_outputs=enc_outputs)
        if enc_outputs.dim() != 3 or enc_outputs.shape[2] != self.num_hiddens:
            expected = f"(batch, keys, {self.num_hiddens})"
            raise ValueError(f"enc_outputs: expected shape {expected}, got {tuple(enc_outputs.shape)}")
        return DecoderState(enc_outputs, enc_valid_lens, (None,) * self.num_blks)

    def hidden(
        self, X: Int[Tensor, "batch n"], state: DecoderState, *, mask: Mask | None = None, bias: Bias | None = None
    ) -> tuple[Float[Tensor, "batch n d"], DecoderState]:
        """Return the output of the last block for each of these n tokens, and the state after them.

        Args:
            mask, bias: of self-attention in every block, for these n queries and all steps so far as keys.

        Raises:
            ValueError: if X are not token ids of the vocabulary, they run past the table of positions, state is not
                what `init_state` or a step gave, for as many batch rows, or mask or bias do not fit.
        """
        if not isinstance(state, DecoderState):
            raise ValueError(f"state: expected that of init_state or of a step before, got {described(state)}")
        H = self.pos_encoding(self.embed(X), offset=state.num_steps)
        for blk in self.blks:
            H, state = blk(H, state, mask=mask, bias=bias)
        return self.norm(H), state

    def forward(
        self, X: Int[Tensor, "batch n"], state: DecoderState, *, mask: Mask | None = None, bias: Bias | None = None
    ) -> tuple[Float[Tensor, "batch n vocab"], DecoderState]:
        """Return the logits of the token after each of these n, and the state after them; arguments as of `hidden`."""
        H, state = self.hidden(X, state, mask=mask, bias=bias)
        return self.dense(H), state
