"""Requests for contributions: what each key adds to a head's output in place of its attention weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from serving.models.model_spec import ModelSpec
from serving.requests.request import Request
from viz_core.maps.contribution_shares import ContributionShares, contribution_shares, longest
from viz_core.trace import Trace, recording_values
from viz_core.view.map_group import MapGroup


@dataclass(frozen=True)
class ContributionRequest(Request[Any, Any]):
    """A request whose run has contribution shares, or lengths on one scale, in place of attention weights."""

    base: Request[Any, Any]
    lengths: bool = False

    @property
    def model(self) -> ModelSpec[Any]:  # type: ignore[override]
        """The model of the base request."""
        return self.base.model

    @property
    def without_payload(self) -> ContributionRequest:
        return ContributionRequest(self.base.without_payload, self.lengths)

    def run(self, model: Any) -> Any:
        """Run the base request with recorded values.

        Raises:
            ValueError: also if a layer's output projection is not found.
        """
        with recording_values():
            run = self.base.run(model)
        found = contribution_lengths if self.lengths else contribution_shares
        return replace(run, trace=found(run.trace, model.network))

    def groups(self, run: Any, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        groups = self.base.groups(run, labels)
        return tuple(replace(group, rows_sum_to_one=False) for group in groups) if self.lengths else groups

    def for_transfer(self, run: Any) -> Any:
        return self.base.for_transfer(run)


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
