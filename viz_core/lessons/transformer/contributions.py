"""Norm of each key's contribution to a head's output, beside its weight."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from viz_core.maps.contribution_shares import shares_of_call
from viz_core.maps.contributions import contribution_norms, contribution_sum
from viz_core.models.projections import output_projection
from viz_core.pretrained import Translation, Translator
from viz_core.trace import Trace, record


class Contributions(NamedTuple):
    """One head's weights, and the lengths of the vectors that its keys add to the layer's output."""

    weights: Float[np.ndarray, "queries keys"]
    norms: Float[np.ndarray, "queries keys"]
    residual: float  # max |all vectors of the layer added - its output without the bias|

    def shares(self, key: int) -> tuple[float, float]:
        """A key's part of the weight, and of the lengths, 0 to 1, on average over queries."""
        part = self.norms[:, key] / self.norms.sum(axis=-1)
        return float(self.weights[:, key].mean()), float(part.mean())


class MarkByLayer(NamedTuple):
    """A key's part of all weight, and of all lengths added, 0 to 1: in each layer, over heads and queries alike."""

    weights: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def rest(self) -> float:
        """The key's share of weight minus its share of contributions, over all layers."""
        return float(np.mean(self.weights) - np.mean(self.shares))


@torch.inference_mode()
def contributions_of(translator: Translator, translation: Translation, site: str, head: int) -> Contributions:
    """The weights and contributions of one head in the pass over a finished translation."""
    trace = _recorded(translator, translation)
    call, W_o = trace[site], output_projection(translator.model, site)
    norms = contribution_norms(call, W_o)[0, head]
    name = f"{call.stack}.{call.layer}.{'cross' if call.kind == 'cross' else 'attention'}"
    written = trace.states[name] if W_o.bias is None else trace.states[name] - W_o.bias
    residual = float((contribution_sum(call, W_o) - written.cpu()).abs().max())
    return Contributions(call.weights(head=head)[0].numpy(), norms.numpy(), residual)


@torch.inference_mode()
def mark_by_layer(
    translator: Translator, translation: Translation, site: str, key: int, as_long: bool = False
) -> MarkByLayer:
    """The share of one key, such as the end mark, in every layer with attention of this site's kind.

    Args:
        as_long: as if the vectors of all keys were of one length: then a share is a weight.
    """
    trace = _recorded(translator, translation)
    kind = trace[site].stack, trace[site].kind
    found = []
    for call in (call for call in trace if (call.stack, call.kind) == kind):
        shares = call if as_long else shares_of_call(call, output_projection(translator.model, call.site))
        found.append([float(maps.weights(keys=key).mean()) for maps in (call, shares)])
    return MarkByLayer(*zip(*found, strict=True))


def _recorded(translator: Translator, translation: Translation) -> Trace:
    """The pass over a finished translation, with its values and states."""
    with record(values=True, states=True) as trace:
        translator.model(*translator.teacher_forced(translation.source_ids, translation.target_ids))
    return trace
