"""Traces whose maps are shares of contribution norms in place of weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.maps.contributions import value_lengths
from viz_core.models.projections import hands_on_values, output_projection
from viz_core.trace import AttentionCall, Source, Trace


@dataclass(frozen=True, eq=False)
class ContributionShares:
    """Source of |a_ij W_o^h v_j| / sum_k |a_ik W_o^h v_k|, computed row by row without a vector for each pair.

    The length of a weight times a vector is the weight times its length: so each key's vector is measured once.
    """

    weights: Source
    lengths: Float[Tensor, "batch heads keys"]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        return self.weights.shape

    def tensors(self) -> list[Tensor]:
        """The tensors that are stored."""
        return [self.lengths, *self.weights.tensors()]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Shares of these heads and queries over all keys; zeros where the norms are all 0."""
        added = self.weights.rows(heads, queries).float() * self.lengths[:, heads, None]
        return added / added.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(added.dtype).tiny)


@torch.no_grad()
def contribution_shares(trace: Trace, model: nn.Module) -> Trace:
    """Trace whose maps are each key's share of the norms that a head adds to a query.

    Each row sums to 1 as one of weights does, so that the two can be compared cell by cell (Kobayashi 2020).

    Args:
        trace: recorded with values, by `record(values=True)` or within `recording_values()`.
        model: whose output projections are found by the sites of its layers.

    Raises:
        ValueError: if a call kept no values, or its layer's output projection is not found.
    """
    found = Trace()
    for call in trace:
        W_o = None if hands_on_values(model, call.site) else output_projection(model, call.site)
        found.add(shares_of_call(call, W_o).source, call.site)
    return found


@torch.no_grad()
def shares_of_call(call: AttentionCall, W_o: nn.Linear | None) -> AttentionCall:
    """Call whose maps are shares of norms, from its layer's output projection, if it has one."""
    device = next(iter(call.source.tensors())).device
    return AttentionCall(call.site, ContributionShares(call.source, value_lengths(call, W_o).to(device)))
