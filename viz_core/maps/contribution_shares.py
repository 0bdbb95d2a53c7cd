"""Traces whose maps are contribution norms in place of weights: shares of a row, or lengths on one scale."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.maps.contributions import value_lengths
from viz_core.models.projections import hands_on_values, output_projection
from viz_core.trace import AttentionCall, Source, Trace

ContributionKind = Literal["", "carried", "lengths"]
"""What maps show: weights, each key's share of the norms that a head adds to a query, or these norms on one scale."""


@dataclass(frozen=True, eq=False)
class ContributionShares:
    """Source of |a_ij W_o^h v_j| / sum_k |a_ik W_o^h v_k|, computed row by row without a vector for each pair.

    Of signed maps too: lengths have no sign.

    With a `unit`, the source of |a_ij W_o^h v_j| / unit, which can be compared between rows, heads and layers.

    The length of a weight times a vector is the weight times its length: so each key's vector is measured once.
    """

    weights: Source
    lengths: Float[Tensor, "batch heads *queries keys"]  # for each query where the layer has a gate
    unit: float | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        return self.weights.shape

    def tensors(self) -> list[Tensor]:
        """The tensors that are stored."""
        return [self.lengths, *self.weights.tensors()]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Shares or lengths of these heads and queries over all keys; zeros where the norms are all 0."""
        lengths = self.lengths[:, heads, queries] if self.lengths.dim() == 4 else self.lengths[:, heads, None]
        added = self.weights.rows(heads, queries).float().abs() * lengths
        if self.unit is not None:
            return added / self.unit
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


def longest(lengths: Iterable[Tensor]) -> float:
    """The longest of all vectors, above 0."""
    tiny = torch.finfo(torch.float32).tiny
    return max((float(each.max()) for each in lengths if each.numel()), default=tiny) or tiny


@torch.no_grad()
def shares_of_call(call: AttentionCall, W_o: nn.Module | None, in_lengths: bool = False) -> AttentionCall:
    """Call whose maps are shares of norms, from its layer's output projection, if it has one.

    Args:
        in_lengths: norms on the scale of this call instead of shares.
    """
    lengths = value_lengths(call, W_o).to(next(iter(call.source.tensors())).device)
    unit = longest([lengths]) if in_lengths else None
    return AttentionCall(call.site, ContributionShares(call.source, lengths, unit))


@torch.no_grad()
def contribution_lengths(trace: Trace, model: nn.Module) -> Trace:
    """Trace whose maps are norms |a_ij W_o^h v_j|, divided by the longest |W_o^h v_j| of all heads and layers: 0 to 1.

    A row's sum says how much a head adds to that query at most; shares hide that (Kobayashi 2020).

    Raises:
        ValueError: as `contribution_shares`.
    """
    shares = contribution_shares(trace, model)
    sources = [call.source for call in shares if isinstance(call.source, ContributionShares)]
    unit = longest([source.lengths for source in sources])
    found = Trace()
    for call, source in zip(shares, sources, strict=True):
        found.add(replace(source, unit=unit), call.site)
    return found
