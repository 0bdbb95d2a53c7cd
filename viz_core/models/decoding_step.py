"""A step of the Transformer's decoder for one token a row, without what only a look inside needs.

Such a step is some thirty small operations a layer. Checking shapes, finding sites, and asking who records or edits
takes longer than computing them. A search needs none of it: maps are recorded in one pass over its result.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from viz_core.attention.masking import length_mask
from viz_core.attention.multi_head import KeysValues, MultiHeadAttention
from viz_core.models.transformer import AddNorm, PositionWiseFFN
from viz_core.models.transformer_decoder import TransformerDecoder, TransformerDecoderBlock
from viz_core.positional.scheme import PositionScheme
from viz_core.positional.sinusoidal import PositionalEncoding
from viz_core.trace.arguments import is_autocast_on
from viz_core.trace.attend import attend_unobserved, is_observed
from viz_core.trace.states import has_foreign_hooks

Step: TypeAlias = Callable[[Int[Tensor, "rows 1"], Any], tuple[Float[Tensor, "rows 1 vocab"], Any]]
"""The logits after one more token in each row, and the state after it."""

_BOOK = {TransformerDecoder, TransformerDecoderBlock, MultiHeadAttention, PositionScheme, AddNorm, PositionWiseFFN}
_BOOK |= {PositionalEncoding, nn.Sequential, nn.Embedding, nn.Linear, nn.LayerNorm, nn.ReLU, nn.Dropout, nn.Identity}


class StepState(NamedTuple):
    """State of `plain_step`: keys and values of each block's self-attention so far, and of its cross-attention."""

    num_steps: int
    own: tuple[Float[Tensor, "rows 2 heads steps d"], ...]
    cross: tuple[Float[Tensor, "rows 2 heads keys d"], ...]
    allowed: Bool[Tensor, "rows 1 1 keys"] | None  # False where a key of cross-attention is padding

    def select(self, rows: Int[Tensor, " rows"]) -> "StepState":
        """Return the state of these batch rows, in this order, as beam search selects them."""
        own, cross = (tuple(each[rows] for each in pairs) for pairs in (self.own, self.cross))
        return StepState(self.num_steps, own, cross, None if self.allowed is None else self.allowed[rows])


def begin_decoding(decoder: Any, enc_outputs: Any, valid_lens: Int[Tensor, " rows"]) -> tuple[Step, Any]:
    """Return what computes a step of the decoder, for one token a row, and the state before the first step.

    It is `plain_step` where that gives what the decoder does, and the decoder where heads or states are recorded or
    edited, in training, under autocast, and where it is no `TransformerDecoder` as in the book, or has hooks or modules
    of someone's own.
    """
    state = decoder.init_state(enc_outputs, valid_lens)
    if not (isinstance(decoder, TransformerDecoder) and _is_plain(decoder)):
        return decoder, state
    rows, num_keys = enc_outputs.shape[:2]
    own, cross = [], []
    for block in decoder.blocks:
        projected: KeysValues = block.attention2.project(enc_outputs, enc_outputs)
        cross.append(torch.stack(projected, dim=1))
        own.append(projected.keys.new_empty(rows, 2, block.attention1.num_heads, 0, block.attention1.head_dim))
    allowed = length_mask(valid_lens, rows, 1, num_keys)[:, None]
    return plain_step(decoder), StepState(0, tuple(own), tuple(cross), None if bool(allowed.all()) else allowed)


def plain_step(decoder: TransformerDecoder) -> Step:
    """Return the step of a decoder whose blocks are the book's, by the weights that it has now.

    Y = LN(x + self(x)), Z = LN(Y + cross(Y)), then LN(Z + W_2 relu(W_1 Z + b_1) + b_2) in each block, and W h + b.
    """
    layers = [_weights(block) for block in decoder.blocks]
    E = decoder.embedding.weight
    P = cast(PositionalEncoding, decoder.pos_encoding).P[0].to(E)
    scale, W, b = decoder.embed_scale, decoder.dense.weight, decoder.dense.bias

    def step(X: Int[Tensor, "rows 1"], state: StepState) -> tuple[Float[Tensor, "rows 1 vocab"], StepState]:
        if state.num_steps >= len(P):
            raise ValueError(f"sequence length: expected at most max_len={len(P)} positions, got {len(P) + 1}")
        H, own = F.embedding(X[:, 0], E) * scale + P[state.num_steps], []
        for (split, W_qkv, W_o, V_q, V_o, W_1, W_2, norm1, norm2, norm3), past, cross in zip(
            layers, state.own, state.cross, strict=True
        ):
            projected = F.linear(H, *W_qkv).view(split)
            past = torch.cat((past, projected[:, 1:]), dim=3)
            own.append(past)
            heads = attend_unobserved(projected[:, 0], past[:, 0], past[:, 1])
            H = F.layer_norm(H + F.linear(heads.flatten(1), *W_o), *norm1)
            queries = F.linear(H, *V_q).view(-1, *split[2:])
            heads = attend_unobserved(queries, cross[:, 0], cross[:, 1], state.allowed)
            H = F.layer_norm(H + F.linear(heads.flatten(1), *V_o), *norm2)
            H = F.layer_norm(H + F.linear(F.linear(H, *W_1).relu_(), *W_2), *norm3)
        return F.linear(H, W, b)[:, None], state._replace(num_steps=state.num_steps + 1, own=tuple(own))

    return step


def _weights(block: TransformerDecoderBlock) -> tuple[Any, ...]:
    """The shape of queries, keys and values by head, the weights of linear layers, those three joined, and of norms."""
    own, cross, ffn = block.attention1, block.attention2, block.ffn
    three = (own.W_q, own.W_k, own.W_v)
    # By columns if the layers' own weights are: see `lay_out_by_columns`.
    weight = torch.cat([part.weight.t() for part in three], dim=1).t()
    bias = None if own.W_q.bias is None else torch.cat([part.bias for part in three])
    linear: tuple[Any, ...] = (own.W_o, cross.W_q, cross.W_o, ffn.dense1, ffn.dense2)
    norms: tuple[Any, ...] = (block.addnorm1.ln, block.addnorm2.ln, block.addnorm3.ln)
    return (
        (-1, 3, own.num_heads, 1, own.head_dim),
        (weight, bias),
        *((part.weight, part.bias) for part in linear),
        *((norm.normalized_shape, norm.weight, norm.bias, norm.eps) for norm in norms),
    )


def _is_plain(decoder: TransformerDecoder) -> bool:
    """Whether a step may leave out everything around the decoder's operations."""
    weight = decoder.dense.weight
    if decoder.training or is_observed() or is_autocast_on(weight.device.type) or torch.compiler.is_compiling():
        return False
    parts = list(decoder.modules())
    known = all(type(part) in _BOOK and "forward" not in vars(part) and not has_foreign_hooks(part) for part in parts)
    return known and decoder.embedding.max_norm is None and all(map(_is_by_the_book, decoder.blocks))


def _is_by_the_book(block: TransformerDecoderBlock) -> bool:
    return not block.addnorm1.norm_first and all(
        layer.softcap is None and layer.window is None and layer.W_k.out_features == layer.W_q.out_features
        for layer in (block.attention1, block.attention2)
    )
