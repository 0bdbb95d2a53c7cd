"""How the blocks of a stack differ from the book's: one object for encoders, decoders and vision transformers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from torch import nn

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.positional.scheme import Positions

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
