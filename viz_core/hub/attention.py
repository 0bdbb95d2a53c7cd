"""Attention of Hugging Face models, computed by `attend`: registered once with transformers.

What single families need is here too: learned sinks, chosen keys, and the difference of two softmaxes.
"""

import itertools
import warnings
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from viz_core.hub.transformers_internals import mask_functions
from viz_core.runtime.hooks import may_end
from viz_core.trace import attend, site_of
from viz_core.trace.arguments import snapshot
from viz_core.trace.edits import Edits
from viz_core.trace.intervene import edits_of, is_editing, refuse_edits, without_edits
from viz_core.trace.output_edits import scales_output
from viz_core.trace.outputs import on_output, on_projected
from viz_core.trace.record import no_recording
from viz_core.trace.sites import projections
from viz_core.trace.source import Projected
from viz_core.trace.trace import current_trace, last_site
from viz_core.trace.weight_edits import GivenWeights
from viz_core.trace.weights import Bias, Mask, allowed_keys

ATTENTION_IMPLEMENTATION = "attention-atlas"
"""The name under which transformers finds our attention: `attn_implementation=ATTENTION_IMPLEMENTATION`."""

WITH_EAGER_MASKS = f"{ATTENTION_IMPLEMENTATION}-with-eager-masks"
"""The same for models that rely on eager masks, which are numbers to be added to the scores."""


@lru_cache(maxsize=1)
def register() -> None:
    """Make our attention known to transformers. Masks are those of its fused attention: boolean, or none at all; by
    the other name those of its eager attention, for models that `custom_attention.implementation_for` names.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    sdpa_mask, eager_mask = mask_functions()

    def masked_forward(*call: Any, **options: Any) -> tuple[Tensor, None]:
        return attention_forward(*call, **{**options, "is_causal": False})  # no mask means that all is seen

    AttentionInterface.register(ATTENTION_IMPLEMENTATION, attention_forward)
    AttentionMaskInterface.register(ATTENTION_IMPLEMENTATION, sdpa_mask)
    AttentionInterface.register(WITH_EAGER_MASKS, masked_forward)
    AttentionMaskInterface.register(WITH_EAGER_MASKS, eager_mask)


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    sinks: Tensor | None = None,
    indices: Tensor | None = None,
    block_indices: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of a transformers layer, computed by `attend`; a drop-in for transformers' own.

    Args:
        query: (batch, heads, queries, d); key and value may have fewer heads.
        attention_mask: boolean (True: may look) or additive; None together with a causal module means causal.
        position_bias: added to the scaled scores, as T5 does.
        softcap: the largest scaled score, as in Gemma 2.
        s_aux: the score of each head's learned sink, as in gpt-oss: the first key of all, for those who record.
        sinks: the same for each query, (batch, heads, queries, 1), as in Inkling 2.
        indices: the keys that each query may look at, (batch, queries, chosen), as in DeepSeek V3.2.

    Returns:
        (batch, queries, heads, d), and None where transformers may put weights.
    """
    if not torch.compiler.is_compiling():  # a graph is whole, and ends when it ends
        may_end()  # between two layers of any model
    if block_indices is not None:
        name = type(module).__name__
        raise ValueError(f"{name}: expected attention to all keys, got blocks chosen for each query; restore the model")
    if attention_mask is not None and attention_mask.shape[-1] > key.shape[2]:  # models before transformers 5 add a key
        attention_mask = attention_mask[..., : key.shape[2]]
    is_bias = attention_mask is not None and attention_mask.dtype != torch.bool
    mask, bias = (None, attention_mask) if is_bias else (attention_mask, None)
    if position_bias is not None:
        bias = position_bias if bias is None else bias + position_bias
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal) and attention_mask is None
    num_queries = query.shape[2]
    if causal and 1 < num_queries < key.shape[2]:  # a first pass over a cache whose end is still empty
        key, value = key[:, :, :num_queries], value[:, :, :num_queries]
        bias = bias if bias is None else bias[..., :num_queries]
    if indices is not None:
        chosen = _chosen(indices, key.shape[2])
        mask = chosen if mask is None else mask & chosen
    if s_aux is not None:
        sinks = s_aux[None, :, None, None]
    key_tokens, covers = None, _covered(module, num_queries, key.shape[2])
    if sinks is not None:
        key_tokens = _tokens_beside_sink(mask, bias, key, site_of(module)) if is_editing() else None
        key, value, mask, bias = with_sink(key, value, mask, bias, sinks)
    options: dict[str, Any] = {
        "mask": mask,
        "bias": bias,
        "causal": causal,
        "scale": None if scaling is None else float(scaling),  # some families have it as a tensor
        "softcap": softcap,
        "dropout": dropout,
        "site": site_of(module),
    }
    if hasattr(module, "lambda_init"):  # DiffLlama
        output = attend_difference(query, key, value, factor=_difference_factor(module), **options)
    else:
        output = attend(query, key, value, **options, key_tokens=key_tokens)
        trace = current_trace()
        site = last_site.get()
        if trace is not None and site in trace and isinstance(source := trace[site].source, Projected):
            chooses = indices is not None or _has_indexer(module)
            source = replace(source, has_sink=sinks is not None, covers=covers, chooses=chooses)
            trace.put(site, replace(source, joins="MergedAttention" in type(module).__name__))
        on_output(trace, output)
    return output.transpose(1, 2).contiguous(), None


def _has_indexer(module: nn.Module) -> bool:
    """Whether a layer has an indexer, for itself or its compressed keys, or uses what that of a layer before chose."""
    parts = module, getattr(module, "compressor", None)
    return getattr(module, "skip_topk", False) or any(getattr(part, "indexer", None) is not None for part in parts)


def _covered(module: nn.Module, num_queries: int, num_keys: int) -> Int[Tensor, "blocks 2"] | None:
    """Return which tokens DeepSeek V4's compressed keys cover, which follow those of a whole pass; None elsewhere.

    In compressed sparse attention a block covers the tokens of the one before it as well.
    """
    compressor = getattr(module, "compressor", None)
    rate = getattr(compressor, "compress_rate", 0)
    if not rate or num_queries < rate or num_keys != num_queries + num_queries // rate:
        return None
    ends = torch.arange(rate, num_queries + 1, rate)
    starts = ends - rate * (2 if "CSA" in type(compressor).__name__ else 1)
    return torch.stack([starts.clamp(min=0), ends], dim=1)


def _difference_factor(module: Any) -> Float[Tensor, ""]:
    """lambda = exp(lambda_q1 lambda_k1) - exp(lambda_q2 lambda_k2) + lambda_init (Ye 2024, equation 2)."""
    products = [getattr(module, f"lambda_q{i}").float() @ getattr(module, f"lambda_k{i}").float() for i in (1, 2)]
    factor: Tensor = products[0].exp() - products[1].exp() + module.lambda_init
    return factor


def watch_projections(model: nn.Module, layers: Collection[nn.Module]) -> list[RemovableHandle]:
    """Compare what these layers' output projections are given with what the heads wrote, in recordings with values."""
    parts = dict(model.named_modules())
    innermost = {
        path: part for path, part in parts.items() if part in layers and not any(c in layers for c in part.children())
    }
    found = {projection for path in innermost for projection in itertools.islice(projections(parts, path), 1)}
    return [projection.register_forward_pre_hook(_before_projection) for projection in found]


def warn_of_requested_maps(model: nn.Module, _inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Warn, before a pass of a model, if it was asked for maps that our attention does not return."""
    requested = named.get("output_attentions")
    if getattr(model.config, "output_attentions", False) if requested is None else requested:
        warnings.warn(
            "output_attentions gives no maps of an instrumented model: read `trace[site].weights()` after "
            "`with record() as trace`, or call `restore(model)` first",
            stacklevel=4,
        )


def _before_projection(_projection: nn.Module, inputs: tuple[Any, ...]) -> None:
    trace = current_trace()
    if trace is not None and inputs:
        on_projected(trace, inputs[0])


def with_sink(
    key: Float[Tensor, "batch key_heads keys d"],
    value: Float[Tensor, "batch key_heads keys v"],
    mask: Mask | None,
    bias: Bias | None,
    sinks: Float[Tensor, "#batch heads #queries 1"],
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Prepend a learned sink as a key that any query may attend to, with a value of zeros.

    Its key and value are zeros and its bias is the learned score s: exp(s) / (exp(s) + sum_j exp(q k_j)) is its weight,
    and what is left of a row sums to 1 minus that (gpt-oss; Xiao 2024, section 3.3). Before the others, so that a
    query still sees its own place and those before it.
    """
    key, value = (F.pad(tensor, (0, 0, 1, 0)) for tensor in (key, value))
    mask = None if mask is None else F.pad(mask, (1, 0), value=True)
    column = sinks.to(key.dtype)
    if bias is None:
        return key, value, mask, F.pad(column, (0, key.shape[2] - 1))
    shape = torch.broadcast_shapes(column.shape[:3], bias.shape[:3])
    return key, value, mask, torch.cat((column.expand(*shape, 1), bias.expand(*shape, -1)), dim=-1)


def _tokens_beside_sink(
    mask: Mask | None, bias: Bias | None, key: Float[Tensor, "batch key_heads keys d"], site: str | None
) -> Bool[Tensor, "batch keys_and_sink"]:
    """Return which keys are tokens once a sink comes first; ValueError if edits give weights, as a sink has no name."""
    refuse_edits(site, GivenWeights, "a layer without a learned sink, which given weights do not name")
    batch, _, num_keys, _ = key.shape
    tokens = allowed_keys(mask, bias, batch, num_keys)
    tokens = torch.ones(batch, num_keys, dtype=torch.bool, device=key.device) if tokens is None else tokens
    return F.pad(tokens, (1, 0), value=False)


def _chosen(indices: Int[Tensor, "batch queries chosen"], num_keys: int) -> Bool[Tensor, "batch 1 queries keys"]:
    """A mask of the keys that each query has chosen."""
    mask = torch.zeros(*indices.shape[:2], num_keys, dtype=torch.bool, device=indices.device)
    return mask.scatter(-1, indices.long(), True)[:, None]


@dataclass(frozen=True, eq=False)
class Difference(Projected):
    """softmax(scale Q_1 K_1^T) - lambda softmax(scale Q_2 K_2^T) (Ye 2024, "Differential Transformer", equation 1).

    Its queries are those of all first softmaxes, then those of all second ones; keys likewise.
    """

    values: Float[Tensor, "batch half_key_heads keys v"] | None = None
    gate: Float[Tensor, "batch half_heads queries v"] | None = None
    factor: float = 0.0  # lambda
    signed: ClassVar[bool] = True
    rule: ClassVar[str] = "difference of softmaxes"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads (half as many as softmaxes), queries and keys."""
        batch, softmaxes, num_queries, _ = self.queries.shape
        return batch, softmaxes // 2, num_queries, self.keys.shape[2]

    def leading_weights(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows some_keys"]:
        """Return the difference of the two softmaxes of these heads and queries; zeros for heads that are off."""
        half = self.shape[1]
        first = self._weights(heads, queries, None)
        rows = first - self.factor * self._weights(slice(heads.start + half, heads.stop + half), queries, None)
        off = [self.edits is not None and self.edits.replaces_output(head) for head in range(half)[heads]]
        return torch.where(torch.tensor(off, device=rows.device)[:, None, None], 0.0, rows)


_first_half: ContextVar[tuple[Tensor, Tensor, Tensor] | None] = ContextVar("first_half", default=None)


def attend_difference(
    queries: Float[Tensor, "batch softmaxes queries d"],
    keys: Float[Tensor, "batch key_softmaxes keys d"],
    values: Float[Tensor, "batch key_softmaxes keys v"],
    *,
    factor: Tensor,
    site: str | None,
    **options: Any,
) -> Float[Tensor, "batch softmaxes queries v"]:
    """Return both softmaxes times one half of the values; their difference is recorded with the second half.

    Heads are pairs of softmaxes, the first of one half of the queries with the first of the other. A layer calls this
    for each half of its values, and takes factor times the second outputs off the first. ValueError if an edit of a
    head is another than `off` or `gate`, or the recording is differentiable.

    Args:
        values: the same for both softmaxes of a head.
        options: all those of `attend`.
    """
    trace = current_trace(site)
    if trace is None and not is_editing():
        return attend(queries, keys, values, site=site, **options)
    if trace is not None and trace.differentiable:
        raise ValueError(f"site {site!r}: expected no differentiable where softmaxes are subtracted, whose map is two")
    mask, bias = (None if options[name] is None else options[name].detach() for name in ("mask", "bias"))
    scale = queries.shape[-1] ** -0.5 if options["scale"] is None else options["scale"]
    causal = options["causal"] and queries.shape[2] > 1
    source = Difference(queries.detach(), snapshot(keys, queries), mask, bias, causal, scale, options["softcap"])
    edits = edits_of(source, site)
    if edits is not None and not all(map(scales_output, edits.edits)):
        raise ValueError(f"site {site!r}: expected off or gate, by which differential attention can be edited")
    with no_recording(), without_edits():
        output = _edited(attend(queries, keys, values, **options), edits, factor)
    if trace is None:
        return output
    first, second = output.detach().chunk(2, dim=1)
    of_heads, own = first - factor.detach() * second, snapshot(values[:, : values.shape[1] // 2], queries)
    before = _first_half.get()
    if before is None or before[0] is not queries:
        _first_half.set((queries, own, of_heads))
        return output
    _first_half.set(None)
    both = torch.cat([before[1], own], dim=-1) if trace.values else None
    trace.add(replace(source, values=both, edits=edits, factor=float(factor.detach())), site)
    on_output(trace, torch.cat([before[2], of_heads], dim=-1))
    return output


def _edited(output: Tensor, edits: Edits | None, factor: Tensor) -> Float[Tensor, "batch softmaxes queries v"]:
    """Return outputs of both softmaxes whose difference is that of the edited heads."""
    if edits is None:
        return output
    first, second = (list(half.unbind(dim=1)) for half in output.chunk(2, dim=1))
    for head in edits.edited_heads(len(first)):
        first[head] = edits.edit_output(first[head] - factor * second[head], head)
        second[head] = torch.zeros_like(second[head])
    return torch.stack([*first, *second], dim=1)
