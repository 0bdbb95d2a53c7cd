"""Requests for contributions: what each key adds to a head's output in place of its attention weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from serving.models.model_spec import ModelSpec
from serving.requests.request import Request
from viz_core.maps.contribution_shares import contribution_lengths, contribution_shares
from viz_core.trace import recording_values
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
