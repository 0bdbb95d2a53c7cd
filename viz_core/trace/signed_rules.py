"""Attention whose maps are signed: differential attention, and linear attention by its rule."""

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import snapshot
from viz_core.trace.attend import attend
from viz_core.trace.edits import Edits
from viz_core.trace.intervene import edits_of, is_editing, without_edits
from viz_core.trace.linear_rule import LinearRule
from viz_core.trace.output_edits import scales_output
from viz_core.trace.outputs import edited_output, on_output
from viz_core.trace.record import no_recording
from viz_core.trace.source import Projected
from viz_core.trace.trace import current_trace


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

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
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


def finish_rule(
    output: Float[Tensor, "batch heads queries v"],
    source: LinearRule,
    values: Tensor,
    site: str | None,
    follows_convolution: bool = False,
) -> Float[Tensor, "batch heads queries v"]:
    """Return what a layer's rule gave, with its edited heads; recorded within `record()`.

    ValueError if an edit changes scores, which the rule does not have, or is to hide a token that a convolution carries
    on; or if the recording is differentiable.

    Args:
        follows_convolution: whether keys and values are made of several tokens, by a short convolution.
    """
    trace = current_trace()
    if trace is not None and trace.differentiable:
        raise ValueError(
            f"site {site!r}: expected no differentiable where a {source.rule} runs, which weighs no scores"
        )
    edits = edits_of(source, site)
    if edits is not None and any(edit.needs_softmax for edit in edits.edits):
        raise ValueError(
            f"site {site!r}: expected off, gate, mean, knock_out, window or patch of outputs, by which a {source.rule} "
            "can be edited: it has no scores"
        )
    if edits is not None and follows_convolution and _hides_a_token(edits, source):
        raise ValueError(
            f"site {site!r}: expected pairs of query and key to cut, got a token cut from all that follow it, in all "
            f"heads: a short convolution before the {source.rule} carries it on to the next tokens"
        )
    if trace is not None:
        own: dict[str, Any] = {name: tensor.detach() for name, tensor in source.named_tensors().items()}
        if trace.values:
            own["values"] = values.detach()
        trace.add(replace(source, **own, edits=edits), site)
    if edits is None:
        return output
    edited = edited_output(output.float(), replace(source, edits=edits), values.float())
    return edited.to(output.dtype)


def _hides_a_token(edits: Edits, source: LinearRule) -> bool:
    """Whether edits cut some token in all heads from all tokens after it."""
    cuts = replace(edits, edits=tuple(edit for edit in edits.edits if edit.cuts_pairs))
    batch, heads, n, _ = source.shape
    if not all(map(cuts.of, range(heads))):
        return False
    queries, keys = cuts.positions
    later = (keys[:, None] >= 0) & (queries[..., None] > keys[:, None])
    scores = torch.zeros(batch, 1, n, n, device=source.keys.device)
    uncut = [cuts.edit_scores(scores, [head], slice(0, n))[:, 0] == 0 for head in range(heads)]
    return bool((later.any(dim=1) & ~(later & torch.stack(uncut).any(dim=0)).any(dim=1)).any())
