"""The door for linear attention: what a layer's rule gave is recorded and edited."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.edits import Edits
from viz_core.trace.intervene import edits_of
from viz_core.trace.linear_rule import LinearRule
from viz_core.trace.pooling import edited_output
from viz_core.trace.trace import current_trace


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
