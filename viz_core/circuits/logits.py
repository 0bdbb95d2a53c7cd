"""A logit as a sum over the embedding, heads, feed-forward nets and biases that wrote into the residual stream."""

import copy
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.models.anatomy import output_projection
from viz_core.runtime.device import float64_device
from viz_core.runtime.hooks import may_end
from viz_core.trace import AttentionCall, Trace, head_outputs
from viz_core.trace.passes import every_site, layer_of, named_sites
from viz_core.trace.states import find_layers

Name: TypeAlias = tuple[str, int | None, int | None]
"""What a part is, its layer and its head."""


class Part(NamedTuple):
    """What one head, one layer or the input adds to the logit of each requested token."""

    name: str  # "embedding", "self" or "cross" (a head, or all of them together), "mlp", "constant": all biases
    layer: int | None
    head: int | None
    value: Float[Tensor, "batch positions"]


@torch.no_grad()
def logit_attribution(
    model: nn.Module,
    trace: Trace,
    token: int | Tensor,
    *,
    position: int | None = -1,
    against: int | Tensor | None = None,
) -> tuple[Part, ...]:
    """Return the logit of a token as a sum of parts: the direct effect of each, along the residual stream.

    LN(x) = g (x - mean) / std + b; with each std held at its value in this pass, all that follows is linear in each
    part (Elhage 2021, "A Mathematical Framework for Transformer Circuits"). Removing a part would also change each std
    and what later layers read; `intervene` shows that. A scale or a softcap of the logits is held as a factor.

    Args:
        trace: of a pass of the model, recorded with values=True and states=True.
        token: whose logit is split: one, one for each text, or one for each text and position.
        position: counted from the first of each text, or -1 for the last; None is all places of the batch.
        against: a token whose logit is subtracted, part by part: what decides between the two.

    Raises:
        ValueError: if no states are recorded, the stream cannot be followed, or logits follow from it in another way.
    """
    stack = next(reversed([*trace.states]), "").partition(".")[0]
    if f"{stack}.output" not in trace.states or f"{stack}.output@2" in trace.states:
        raise ValueError("trace: expected one pass of record(values=True, states=True) with logits, got none or more")
    layers = layers_by_name(model)
    embedding, output = trace.states[f"{stack}.embedding"], trace.states[f"{stack}.output"]
    at = _places(trace, stack, embedding, position)
    found, parts = stream_parts(model, trace, stack, at)
    outside = set(model.modules()) - {part for layer in layers.values() for part in layer.modules()}
    logits = (
        state_rows(output, at - embedding.shape[1] + output.shape[1]) if output.dim() == 3 else double(output[:, None])
    )
    cap = getattr(getattr(model, "config", None), "final_logit_softcapping", None)
    norm, linear = _head(outside, parts.sum(dim=0), logits, output.dtype, cap)
    parts = hold_scale(norm, parts)
    total = torch.zeros(parts.shape[:3], dtype=torch.float64, device=parts.device)
    for name, sign, chosen in (("token", 1, token), ("against", -1, against)):
        if chosen is not None:
            ids = torch.as_tensor(chosen, device=parts.device)
            if not 0 <= int(ids.min()) <= int(ids.max()) < logits.shape[-1]:
                raise ValueError(f"{name}: expected 0 to {logits.shape[-1] - 1}, got {chosen!r:.40}")
            ids = (ids[:, None] if ids.dim() == 1 else ids).expand(at.shape)
            values = torch.einsum("pbmd,bmd->pbm", parts, double(linear.weight[ids]))
            values[0] += 0 if linear.bias is None else double(linear.bias[ids])
            factor = logits.gather(-1, ids[..., None])[..., 0] / values.sum(dim=0)
            total += sign * values * torch.where(factor.isfinite(), factor, 1)
    return tuple(Part(*name, value) for name, value in zip(found, total.float(), strict=True))


def layers_by_name(model: nn.Module) -> dict[str, nn.Module]:
    """Return the layers of a model by their names: "decoder.2"."""
    sites = named_sites(model)
    layers = {name: layer for layer, name in find_layers(model, sites).items()}
    calls = [(layer_of(sites[part]), map(layer_of, own)) for part, own in every_site(model, sites).items()]
    return layers | {each: layers[name] for name, own in calls for each in own if name in layers}


def stream_parts(
    model: nn.Module,
    trace: Trace,
    stack: str,
    at: Int[Tensor, "batch positions"],
    until: tuple[str, ...] = (),
    start: dict[str, Float[Tensor, "batch positions d"]] | None = None,
) -> tuple[list[Name], Float[Tensor, "parts batch positions d"]]:
    """Return what has been written into a stack's stream at some places, part by part.

    Args:
        until: how the first state begins that is left out: "decoder.2.".
        start: parts of the embedding; one unless given.
    """
    layers, X = layers_by_name(model), state_rows(trace.states[f"{stack}.embedding"], at)
    start = start or {"embedding": X}
    found: list[Name] = [("constant", None, None), *((name, None, None) for name in start)]
    parts = torch.stack([X - sum(start.values()), *start.values()])
    for name, state in trace.states.items():
        layer, _, what = name.rpartition(".")
        if name.startswith(until):
            break
        if not layer.startswith(f"{stack}.") or what == "neurons":
            continue
        number, norms = int(layer.rpartition(".")[2]), norms_among(layers[layer].modules(), X)
        if what.startswith("residual"):
            parts = _after(norms, parts, state_rows(state, at), state.dtype)
            continue
        kind = "self" if what == "attention" else what
        calls = (call for call in trace if call.site.startswith(f"{layer}.") and call.kind == kind)
        heads = next((_heads(model, call, state, at, norms) for call in calls), None)
        found += [(kind, number, None)] if heads is None else [(kind, number, head) for head in range(len(heads))]
        heads = state_rows(state, at)[None] if heads is None else heads
        parts = torch.cat([parts, heads])
        parts[0] += state_rows(state, at) - heads.sum(dim=0)  # the bias of the projection
    return found, parts


def _places(trace: Trace, stack: str, state: Tensor, position: int | None) -> Int[Tensor, "batch positions"]:
    """Return the rows of a state that are asked for, of each text."""
    batch, n = state.shape[:2]
    if position is None:
        return torch.arange(n, device=state.device).expand(batch, -1)
    masks = (call.query_mask for call in trace if call.stack == stack and call.kind == "self")
    tokens = next(masks, torch.ones(batch, n, dtype=torch.bool)).to(state.device)
    counts = tokens.sum(dim=-1)
    if not -(least := int(counts.min())) <= position < least:
        raise ValueError(f"position: expected one of the {least} tokens of each text, got {position}")
    return (tokens.long().argmax(dim=-1) + (position if position >= 0 else counts + position))[:, None]


def state_rows(state: Tensor, at: Int[Tensor, "batch positions"]) -> Float[Tensor, "batch positions d"]:
    """Return some rows of a state of each text, in float64."""
    return double(state.gather(1, at.to(state.device)[..., None].expand(-1, -1, state.shape[-1])))


def double(tensor: Tensor) -> Tensor:
    """Return a tensor in float64, on the CPU if its device has none."""
    return tensor.to(float64_device(tensor.device)).double()


def _heads(
    model: nn.Module, call: AttentionCall, state: Tensor, at: Tensor, norms: Sequence[nn.Module]
) -> Float[Tensor, "heads batch positions d"] | None:
    """Return what each head adds; None where it cannot be told apart."""
    try:
        outputs, W_o = head_outputs(call), output_projection(model, call.site)
    except ValueError:
        return None
    gate = getattr(call.source, "gate", None)
    outputs = double((outputs if gate is None else outputs * gate.cpu()).to(state.device))
    heads = torch.einsum("bhnv,dhv->hbnd", outputs, double(W_o.weight).unflatten(1, (call.num_heads, -1)))
    whole, dtype, state = heads.sum(dim=0) + (0 if W_o.bias is None else double(W_o.bias)), state.dtype, double(state)
    chosen = torch.stack([state_rows(head, at) for head in heads])
    made: list[tuple[Any, Tensor]] = [(1.0, whole), *((norm, norm(whole)) for norm in norms)]
    if state[..., 0].numel() > 1:  # of one token alone any change would be one
        scale = (whole * state).sum(dim=(0, 1)) / whole.square().sum(dim=(0, 1))  # a layer scale, a multiplier
        made.append((scale, scale * whole))
    found = closest(made, state, dtype)
    if found is None or not isinstance(found, nn.Module):
        return None if found is None else found * chosen
    constant = (state_rows(whole, at) - chosen.sum(dim=0))[None]
    return hold_scale(found, torch.cat([constant, chosen]))[1:]


def norms_among(parts: Iterable[nn.Module], like: Tensor) -> list[nn.Module]:
    """Return the norms as wide as a tensor among some modules, in float64 and on its device."""
    own, found = like.shape[-1:], (part for part in parts if "Norm" in type(part).__name__ and not [*part.children()])
    sized = ((part, getattr(part, "weight", None), getattr(part, "normalized_shape", own)) for part in found)
    found = (part for part, weight, shape in sized if tuple(shape if weight is None else weight.shape) == own)
    return [copy.deepcopy(part).to(like.device).double() for part in found]


def _after(norms: Iterable[nn.Module], parts: Tensor, stream: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the parts of the stream at this place: as they are, or after the norm that comes last."""
    x = parts.sum(dim=0)
    norm = closest(((norm, norm(x)) for norm in (nn.Identity(), *norms)), stream, dtype)
    if norm is None:
        raise ValueError("trace: expected layers that add to the stream and normalise it, got another operation")
    parts = hold_scale(norm, parts)
    parts[0] += stream - parts.sum(dim=0)  # rounding
    return parts


def _head(outside: set[nn.Module], x: Tensor, logits: Tensor, dtype: torch.dtype, cap: float | None) -> Any:
    """Return the last norm and the output layer that make these logits, but for a factor or a softcap."""
    shape = logits.shape[-1], x.shape[-1]
    linears = [part for part in outside if isinstance(part, nn.Linear) and part.weight.shape == shape]

    def made(norm: nn.Module, linear: nn.Linear) -> Tensor:
        own = norm(x) @ double(linear.weight).T + (0 if linear.bias is None else double(linear.bias))
        return own * (own * logits).sum() / own.square().sum() if cap is None else cap * (own / cap).tanh()

    pairs = product((nn.Identity(), *norms_among(outside, x)), linears)
    if (found := closest(((pair, made(*pair)) for pair in pairs), logits, dtype)) is not None:
        return found
    raise ValueError("model: expected logits that are a norm and an output layer of the last state, got others")


def hold_scale(norm: nn.Module, parts: Float[Tensor, "parts *batch d"]) -> Float[Tensor, "parts *batch d"]:
    """Return each part after a norm whose scale is held at that of their sum; its bias goes to the first part."""
    x = parts.sum(dim=0)
    probe = torch.ones_like(x[..., :1].expand_as(x)).cumsum(dim=-1)  # no component is 0, whether centred or not
    probe = probe - probe.mean(dim=-1, keepdim=True) + 0.3
    bias, is_centred = norm(torch.zeros_like(x)), torch.allclose(norm(probe), norm(probe + 1), atol=1e-6)
    centre = (lambda v: v - v.mean(dim=-1, keepdim=True)) if is_centred else (lambda v: v)
    gain = (norm(probe) - bias) / centre(probe)
    scale = ((norm(x) - bias) * gain * centre(x)).sum(-1, True) / (gain * centre(x)).square().sum(-1, True)
    held = scale * gain * centre(parts)
    held[0] += bias
    return held


def closest(made: Iterable[tuple[Any, Tensor]], expected: Tensor, dtype: torch.dtype) -> Any:
    """Return the first whose numbers are as near to the expected ones as any; None if none are, up to rounding.

    In half precision a norm, a multiplier and nothing at all may all be near.
    """
    sizes = []
    for own, each in made:
        may_end()  # each may be made from a whole vocabulary
        sizes.append((own, float((each - expected).abs().max().nan_to_num(torch.inf))))
    least = min((size for _, size in sizes), default=torch.inf)
    is_equal = least <= 500 * min(torch.finfo(dtype).eps, 1e-4) * float(expected.abs().max())
    return next((own for own, size in sizes if size <= 2 * least), None) if is_equal else None
