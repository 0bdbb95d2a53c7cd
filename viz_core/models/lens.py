"""The logits of a decoder, or differences of two, as a sum over heads and layers."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.attention.projection import check_tokens
from viz_core.models.transformer import AddNorm
from viz_core.models.transformer_decoder import DecoderState, TransformerDecoder
from viz_core.trace import AttentionCall, head_outputs, record


class Part(NamedTuple):
    """The contribution of one head, one layer or the input to the logit of each requested token."""

    name: str  # "embedding", "self", "cross", "ffn", or "constant": all biases together
    layer: int | None
    head: int | None  # of "self" and "cross"
    logits: Float[Tensor, "batch n"]


@torch.inference_mode()
def logit_parts(
    decoder: TransformerDecoder,
    X: Int[Tensor, "batch n"],
    state: DecoderState,
    tokens: Int[Tensor, "batch n"],
    against: Int[Tensor, "batch n"] | None = None,
) -> tuple[Part, ...]:
    """Return the logit of one token at each step as a sum over the input, heads, feed-forward nets and biases.

    A layer's output is added to the residual stream and normalised: LN(x) = g (x - mean) / std + b. With each std fixed
    at its value in this pass, everything that follows is linear in each part: it is centred, scaled by g / std, norm
    after norm, and multiplied by the token's row of the output layer; the parts add up to the logit. This is the direct
    effect of each part, along the residual path. Removing a part would also change each std and the input of later
    layers; `intervene` shows that.

    Args:
        tokens: the token whose logit is split, at each step.
        against: a token at each step whose logit is subtracted, part by part: what decides between the two.

    Raises:
        ValueError: as the decoder's own call, or if tokens are not one token id for each of X.
    """
    check_tokens(X, decoder.embedding)
    for name, given in {"tokens": tokens, "against": tokens if against is None else against}.items():
        check_tokens(given, decoder.embedding)
        if given.shape != X.shape:
            raise ValueError(f"{name}: expected one for each of X, {tuple(X.shape)}, got shape {tuple(given.shape)}")
    H = decoder.pos_encoding(decoder.embed(X), offset=state.num_steps)
    names: list[tuple[str, int | None, int | None]] = [("constant", None, None), ("embedding", None, None)]
    parts = torch.stack([torch.zeros_like(H), H])
    for i, blk in enumerate(decoder.blocks):
        with record(values=True) as trace:
            following, state = blk(H, state)
        for kind, layer, addnorm in (("self", blk.attention1, blk.addnorm1), ("cross", blk.attention2, blk.addnorm2)):
            heads, constant = _heads(trace[f"decoder.{i}.{kind}"], layer)
            parts[0] += constant
            parts = _after_addnorm(addnorm, torch.cat([parts, heads.to(parts)]))
            names += [(kind, i, head) for head in range(len(heads))]
        Y = parts.sum(dim=0)
        parts = _after_addnorm(blk.addnorm3, torch.cat([parts, blk.ffn(blk.addnorm3.branch(Y))[None]]))
        names.append(("ffn", i, None))
        H = following
    if not isinstance(decoder.norm, nn.Identity):
        parts = _normalised(decoder.norm, parts)
    rows, bias = decoder.dense.weight[tokens], decoder.dense.bias
    if against is not None:
        rows = rows - decoder.dense.weight[against]
    logits = torch.einsum("pbnd,bnd->pbn", parts, rows)
    if bias is not None:
        logits[0] += bias[tokens] if against is None else bias[tokens] - bias[against]
    return tuple(Part(*name, each) for name, each in zip(names, logits, strict=True))


def _heads(call: AttentionCall, layer: MultiHeadAttention) -> tuple[Float[Tensor, "heads batch n d"], Tensor]:
    """Return W_o^h times the output of head h, for each head, and the layer's bias."""
    W = layer.W_o.weight.unflatten(1, (call.num_heads, -1))  # (d, heads, v)
    outputs = torch.einsum("bhnv,dhv->hbnd", head_outputs(call).to(W), W)
    return outputs, torch.zeros(()) if layer.W_o.bias is None else layer.W_o.bias


def _after_addnorm(addnorm: AddNorm, parts: Float[Tensor, "parts batch n d"]) -> Float[Tensor, "parts batch n d"]:
    """Return the parts after an addition, and after its norm if that comes last."""
    return parts if addnorm.norm_first else _normalised(addnorm.ln, parts)


def _normalised(norm: nn.Module, parts: Float[Tensor, "parts batch n d"]) -> Float[Tensor, "parts batch n d"]:
    """Return g (p - mean(p)) / std of each part p, std of their sum; the norm's bias is added to the constant, part 0.

    An RMSNorm subtracts no mean: g p / rms (Zhang 2019, equation 4).
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
