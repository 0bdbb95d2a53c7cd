"""What a decoder would say after each layer, and which heads and layers moved the logit of the word it said."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.attention.projection import check_tokens
from viz_core.models.transformer import AddNorm
from viz_core.models.transformer_decoder import DecoderState, TransformerDecoder
from viz_core.trace import AttentionCall, head_outputs, record


@torch.inference_mode()
def layer_predictions(
    decoder: TransformerDecoder, X: Int[Tensor, "batch n"], state: DecoderState
) -> Float[Tensor, "layers batch n vocab"]:
    """The logits that the decoder's own output layer reads off its states: those that enter, then after each block.

    (nostalgebraist 2020, "the logit lens".) Where norms come first, the last norm is applied too. The last of these are
    the decoder's own logits.

    Raises:
        ValueError: as the decoder's own call.
    """
    H = decoder.pos_encoding(decoder.embed(X), offset=state.num_steps)
    states = [H]
    for blk in decoder.blocks:
        H, state = blk(H, state)
        states.append(H)
    return torch.stack([decoder.dense(decoder.norm(each)) for each in states])


class Part(NamedTuple):
    """What one head, one layer or the input adds to the logit of each token asked for."""

    name: str  # "embedding", "self", "cross", "ffn", or "constant": all biases together
    layer: int | None
    head: int | None  # of "self" and "cross"
    logits: Float[Tensor, "batch n"]


@torch.inference_mode()
def logit_parts(
    decoder: TransformerDecoder, X: Int[Tensor, "batch n"], state: DecoderState, tokens: Int[Tensor, "batch n"]
) -> tuple[Part, ...]:
    """The logit of one token at each step as a sum over the input, every head, every feed-forward net and the biases.

    A layer's output is added to what came before and normalised: LN(x) = g (x - mean) / std + b. Each std is held at
    what it was in this pass. Then all that follows is linear in each part alone: it is centred, scaled by g / std, norm
    after norm, and read by the token's row of the output layer; the parts add up to the logit. Held fixed means: this
    is what each part carries to the logit by itself, along the residual path. It is not what would happen without it,
    as then each std would be another, and later layers would read something else; `intervene` shows that.

    Args:
        tokens: the token whose logit is split, at each step.

    Raises:
        ValueError: as the decoder's own call, or if tokens are not one token id for each of X.
    """
    check_tokens(X, decoder.embedding)
    check_tokens(tokens, decoder.embedding)
    if tokens.shape != X.shape:
        raise ValueError(f"tokens: expected one for each of X, {tuple(X.shape)}, got shape {tuple(tokens.shape)}")
    H = decoder.pos_encoding(decoder.embed(X), offset=state.num_steps)
    names: list[tuple[str, int | None, int | None]] = [("constant", None, None), ("embedding", None, None)]
    parts = torch.stack([torch.zeros_like(H), H])
    for i, blk in enumerate(decoder.blocks):
        with record(values=True) as trace:
            following, state = blk(H, state)
        for kind, layer, addnorm in (("self", blk.attention1, blk.addnorm1), ("cross", blk.attention2, blk.addnorm2)):
            heads, constant = _heads(trace[f"decoder.{i}.{kind}"], layer)
            parts[0] += constant
            parts = _held(addnorm, torch.cat([parts, heads.to(parts)]))
            names += [(kind, i, head) for head in range(len(heads))]
        Y = parts.sum(dim=0)
        parts = _held(blk.addnorm3, torch.cat([parts, blk.ffn(blk.addnorm3.branch(Y))[None]]))
        names.append(("ffn", i, None))
        H = following
    if not isinstance(decoder.norm, nn.Identity):
        parts = _normalised(decoder.norm, parts)
    logits = torch.einsum("pbnd,bnd->pbn", parts, decoder.dense.weight[tokens])
    if decoder.dense.bias is not None:
        logits[0] += decoder.dense.bias[tokens]
    return tuple(Part(*name, each) for name, each in zip(names, logits, strict=True))


def _heads(call: AttentionCall, layer: MultiHeadAttention) -> tuple[Float[Tensor, "heads batch n d"], Tensor]:
    """W_o^h times what head h wrote, for each head, and the layer's bias."""
    W = layer.W_o.weight.unflatten(1, (call.num_heads, -1))  # (d, heads, v)
    written = torch.einsum("bhnv,dhv->hbnd", head_outputs(call).to(W), W)
    return written, torch.zeros(()) if layer.W_o.bias is None else layer.W_o.bias


def _held(addnorm: AddNorm, parts: Float[Tensor, "parts batch n d"]) -> Float[Tensor, "parts batch n d"]:
    """The parts after an addition, and after its norm where that comes last."""
    return parts if addnorm.norm_first else _normalised(addnorm.ln, parts)


def _normalised(norm: nn.Module, parts: Float[Tensor, "parts batch n d"]) -> Float[Tensor, "parts batch n d"]:
    """g (p - mean(p)) / std of each part p, std that of their sum; the norm's bias joins the constant, part 0.

    An RMSNorm takes no mean away: g p / rms (Zhang 2019, equation 4).

    Raises:
        ValueError: if it is another norm.
    """
    if isinstance(norm, nn.LayerNorm):
        parts = parts - parts.mean(dim=-1, keepdim=True)
    elif not isinstance(norm, nn.RMSNorm):
        raise ValueError(f"expected a decoder with LayerNorm or RMSNorm, got {type(norm).__name__}")
    eps = torch.finfo(parts.dtype).eps if norm.eps is None else norm.eps
    scaled = parts if norm.weight is None else norm.weight * parts
    scaled = scaled / (parts.sum(dim=0).square().mean(dim=-1, keepdim=True) + eps).sqrt()
    if isinstance(norm, nn.LayerNorm) and norm.bias is not None:
        scaled[0] += norm.bias
    return scaled
