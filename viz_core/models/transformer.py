"""The Transformer's parts and its encoder (Vaswani 2017), by the book's names and state-dict keys.

Post-norm by default. The decoder is in `transformer_decoder`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.attention.projection import check_features, check_norm_inputs
from viz_core.models.encoder_decoder import TokenReader
from viz_core.positional.entry import Positions
from viz_core.positional.sinusoidal import PositionalEncoding
from viz_core.trace import name_sites
from viz_core.trace.arguments import check_number, check_whole
from viz_core.trace.weights import Bias, Mask

Norm: TypeAlias = Callable[[Any], nn.Module]
"""Makes a norm of a width: `nn.LayerNorm`, `nn.RMSNorm`."""

FeedForward: TypeAlias = Callable[[int, int], nn.Module]
"""Makes a feed-forward net of its inner and its outer width: `PositionWiseFFN`, `GatedFFN`."""


@dataclass(frozen=True)
class BlockOptions:
    """What changes in every block of a stack; by default, nothing.

    BlockOptions(norm_first=True, norm=nn.RMSNorm, ffn=GatedFFN, positions=Rotary(), num_key_heads=2) is a block of
    Llama.

    Attributes:
        norm_first: whether norms come before the layers, as in GPT-2 and later models, or after the addition. None is
            the book's: after in the Transformer, before in the Vision Transformer.
        norm: makes the norms.
        ffn: makes the feed-forward nets. None is the book's: `PositionWiseFFN` in the Transformer, `ViTMLP` in the
            Vision Transformer.
        positions: a scheme within every self-attention, shared by all blocks, or a function that gives each block its
            own. The Transformer then adds no sinusoids to its embeddings.
        num_key_heads, softcap, window: as in `MultiHeadAttention`. The window is for self-attention alone.
    """

    norm_first: bool | None = None
    norm: Norm = nn.LayerNorm
    ffn: FeedForward | None = None
    positions: Positions | None = None
    num_key_heads: int | None = None
    softcap: float | None = None
    window: int | None = None

    def self_attention(self, num_hiddens: int, num_heads: int, dropout: float, use_bias: bool) -> MultiHeadAttention:
        """Return a layer of self-attention with these options."""
        return MultiHeadAttention(
            num_hiddens,
            num_heads,
            dropout,
            use_bias,
            num_key_heads=self.num_key_heads,
            softcap=self.softcap,
            window=self.window,
            positions=self.positions,
        )

    def cross_attention(self, num_hiddens: int, num_heads: int, dropout: float, use_bias: bool) -> MultiHeadAttention:
        """Return a layer of cross-attention: no positions and no window, as its keys are another sequence."""
        return replace(self, positions=None, window=None).self_attention(num_hiddens, num_heads, dropout, use_bias)


BOOK = BlockOptions()
"""The book's blocks."""


class AddNorm(nn.Module):
    """LayerNorm(X + dropout(Y)): a residual connection, then normalisation (Vaswani 2017, section 3.1).

    With norm_first the norm is part of the branch, X + dropout(f(LayerNorm(X))), and the residual path has none, so
    that deep stacks train without warm-up (Xiong 2020, figure 1): `Y = f(addnorm.branch(X)); addnorm(X, Y)`.

    Args:
        norm_shape: width of the vectors, as `nn.LayerNorm` takes it.
        dropout: probability of dropping a component of the branch's output while training, 0 to 1.
        norm_first: whether the norm comes before the layer.
        norm: makes the norm of that shape, for example `nn.RMSNorm`.

    Raises:
        ValueError: if a size is not a positive whole number, or dropout is out of range.
    """

    def __init__(
        self, norm_shape: int | list[int], dropout: float, norm_first: bool = False, norm: Norm = nn.LayerNorm
    ) -> None:
        super().__init__()
        check_number(0, 1, dropout=dropout)
        self.norm_shape = tuple(norm_shape) if isinstance(norm_shape, list | tuple) else (norm_shape,)
        check_whole(**{f"norm_shape[{place}]": side for place, side in enumerate(self.norm_shape)})
        self.norm_first = norm_first
        self.dropout = nn.Dropout(dropout)
        self.ln = norm(norm_shape)

    def branch(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Return the input of the layer: X, or LayerNorm(X) if the norm comes first (Xiong 2020, figure 1).

        Raises:
            ValueError: if X is not a floating-point tensor of the norm's width and device.
        """
        check_norm_inputs(self.ln, self.norm_shape, X=X)
        return self.ln(X) if self.norm_first else X

    def forward(self, X: Float[Tensor, "*batch d"], Y: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """LayerNorm(X + dropout(Y)); X + dropout(Y) where the norm came first.

        Raises:
            ValueError: if X and Y are not floating-point tensors of the norm's width and device, or differ in shape.
        """
        check_norm_inputs(self.ln, self.norm_shape, X=X, Y=Y)
        added = X + self.dropout(Y)
        return added if self.norm_first else self.ln(added)


class PositionWiseFFN(nn.Module):
    """W_2 relu(W_1 x + b_1) + b_2, the same at every position (Vaswani 2017, equation 2).

    Args:
        ffn_num_hiddens: width inside.
        ffn_num_outputs: width of the output.
        ffn_num_inputs: width of the input, if it differs.

    Raises:
        ValueError: if a size is not a positive whole number.
    """

    def __init__(self, ffn_num_hiddens: int, ffn_num_outputs: int, ffn_num_inputs: int | None = None) -> None:
        super().__init__()
        num_inputs = ffn_num_outputs if ffn_num_inputs is None else ffn_num_inputs
        check_whole(ffn_num_hiddens=ffn_num_hiddens, ffn_num_outputs=ffn_num_outputs, ffn_num_inputs=num_inputs)
        self.dense1 = nn.Linear(num_inputs, ffn_num_hiddens)
        self.relu = nn.ReLU()
        self.dense2 = nn.Linear(ffn_num_hiddens, ffn_num_outputs)

    def forward(self, X: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """W_2 relu(W_1 x + b_1) + b_2 of each vector x (Vaswani 2017, equation 2)."""
        check_features("X", X, self.dense1)
        return self.dense2(self.relu(self.dense1(X)))


class GatedFFN(nn.Module):
    """W_2 (silu(W_g x) * W_1 x): SwiGLU, the feed-forward net of Llama and Mistral (Shazeer 2020, equation 6).

    Args:
        activation: of the gate; gelu makes it GEGLU, as in Gemma.
    """

    def __init__(
        self, ffn_num_hiddens: int, ffn_num_outputs: int, activation: Callable[[Tensor], Tensor] = F.silu
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(ffn_num_outputs, ffn_num_hiddens, bias=False)
        self.dense1 = nn.Linear(ffn_num_outputs, ffn_num_hiddens, bias=False)
        self.activation = activation
        self.dense2 = nn.Linear(ffn_num_hiddens, ffn_num_outputs, bias=False)

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """W_2 (silu(W_g x) * W_1 x) of each vector x."""
        return self.dense2(self.activation(self.gate(X)) * self.dense1(X))


class TransformerEncoderBlock(nn.Module):
    """Self-attention, add and norm, feed-forward, add and norm (Vaswani 2017, section 3.1).

    Args:
        ffn_num_hiddens: width inside the feed-forward net.
        use_bias: whether the projections of attention have biases.
        options: what differs from the book's block.
    """

    def __init__(
        self,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool = False,
        *,
        options: BlockOptions = BOOK,
    ) -> None:
        super().__init__()
        norm_first = bool(options.norm_first)
        self.attention = options.self_attention(num_hiddens, num_heads, dropout, use_bias)
        self.addnorm1 = AddNorm(num_hiddens, dropout, norm_first, options.norm)
        self.ffn = (options.ffn or PositionWiseFFN)(ffn_num_hiddens, num_hiddens)
        self.addnorm2 = AddNorm(num_hiddens, dropout, norm_first, options.norm)

    def forward(
        self,
        X: Float[Tensor, "batch n d"],
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch n"] | None = None,
        *,
        causal: bool = False,
        mask: Mask | None = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch n d"]:
        """Y = LN(X + attention(X)), then LN(Y + ffn(Y)); norm first: Y = X + attention(LN(X)), then Y + ffn(LN(Y)).

        Args:
            valid_lens, causal, mask, bias: as in `MultiHeadAttention`.
        """
        Z = self.addnorm1.branch(X)
        Y = self.addnorm1(X, self.attention(Z, Z, Z, valid_lens, causal=causal, mask=mask, bias=bias))
        return self.addnorm2(Y, self.ffn(self.addnorm2.branch(Y)))


class InputDropout(nn.Dropout):
    """Takes the place of `PositionalEncoding` in a stack whose positions enter within its attentions."""

    def forward(self, X: Float[Tensor, "batch n d"], offset: int = 0) -> Float[Tensor, "batch n d"]:  # noqa: ARG002
        """Return X after dropout, at any offset."""
        return super().forward(X)


def input_positions(num_hiddens: int, dropout: float, options: BlockOptions) -> PositionalEncoding | InputDropout:
    """Return what a stack does to its scaled embeddings: sinusoids and dropout, or dropout alone."""
    return PositionalEncoding(num_hiddens, dropout) if options.positions is None else InputDropout(dropout)


class TransformerEncoder(TokenReader):
    """Embedding times sqrt(d), plus position, through num_blks encoder blocks (Vaswani 2017, figure 1, left).

    With `causal=True` it is the body of a language model.

    Args:
        vocab_size: number of token ids.
        num_hiddens: width of a token.
        ffn_num_hiddens: width inside each feed-forward net.
        num_heads: heads of each attention; they divide num_hiddens.
        num_blks: number of blocks; block i is the site "encoder.i.self" of a trace.
        dropout: probability of dropping an embedding, a weight or a branch's output while training.
        use_bias: whether the projections of attention have biases.
        options: what differs from the book's stack in every block. With `norm_first` there is one more norm after the
            last block, `norm`, as the sum that leaves it was never normalised (Xiong 2020).

    Raises:
        ValueError: if a size is not a positive whole number, num_blks not a whole number from 0 on, or as
            `MultiHeadAttention`.
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
        super().__init__(vocab_size, num_hiddens, math.sqrt(num_hiddens))  # the scale of the positions added to them
        self.num_hiddens = num_hiddens
        self.pos_encoding = input_positions(num_hiddens, dropout, options)
        self.blks = nn.Sequential()
        for i in range(num_blks):
            block = TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias, options=options)
            self.blks.add_module(f"block{i}", block)
        self.norm = options.norm(num_hiddens) if options.norm_first else nn.Identity()
        name_sites(self, "encoder")

    @property
    def blocks(self) -> tuple[TransformerEncoderBlock, ...]:
        """The blocks, first to last."""
        return cast(tuple[TransformerEncoderBlock, ...], tuple(self.blks))

    def forward(
        self,
        X: Int[Tensor, "batch n"],
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch n"] | None = None,
        *,
        causal: bool = False,
        mask: Mask | None = None,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch n d"]:
        """Return the output of all blocks for sqrt(d) E[x] + P; keys past a row's valid length are masked.

        Args:
            causal, mask, bias: as in `MultiHeadAttention`, in every block.

        Raises:
            ValueError: if X are not token ids of the vocabulary, more of them than there are positions in the table, or
                valid_lens, mask or bias do not fit them.
        """
        H = self.pos_encoding(self.embed(X))
        for blk in self.blks:
            H = blk(H, valid_lens, causal=causal, mask=mask, bias=bias)
        return self.norm(H)
