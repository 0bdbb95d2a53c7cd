"""Maps of what keys bring in place of what they are asked for: a trace whose every map is one of shares of lengths."""

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
    """A source of |a_ij W_o^h v_j| / sum_k |a_ik W_o^h v_k|, rows at a time: no vector of a pair is ever made.

    The length of a weight times a vector is the weight times its length: so each key's vector is measured once.
    """

    weights: Source
    lengths: Float[Tensor, "batch heads keys"]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        return self.weights.shape

    def tensors(self) -> list[Tensor]:
        """What is held."""
        return [self.lengths, *self.weights.tensors()]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """The shares of these heads and queries over all keys; zeros where nothing is added."""
        added = self.weights.rows(heads, queries).float() * self.lengths[:, heads, None]
        return added / added.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(added.dtype).tiny)


@torch.no_grad()
def contribution_shares(trace: Trace, model: nn.Module) -> Trace:
    """The recording with each call's maps as shares: how much of the lengths that a head adds to a query is a key's.

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
    """One call with its maps as shares, by its layer's output projection, if it has one.

    Raises:
        ValueError: as `viz_core.maps.contributions.contribution_norms`.
    """
    device = next(iter(call.source.tensors())).device
    return AttentionCall(call.site, ContributionShares(call.source, value_lengths(call, W_o).to(device)))
