"""What keys bring, asked like what they are asked for: the same request with other maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from serving.models.model_spec import ModelSpec
from serving.requests.request import Request
from viz_core.maps.contribution_shares import contribution_shares
from viz_core.trace import keeping_values
from viz_core.view.map_group import MapGroup


@dataclass(frozen=True)
class ContributionRequest(Request[Any, Any]):
    """Another request; every map of its run is one of each key's share of what a head adds."""

    asked: Request[Any, Any]

    @property
    def model(self) -> ModelSpec[Any]:  # type: ignore[override]
        """The model that is asked."""
        return self.asked.model

    @property
    def without_payload(self) -> ContributionRequest:
        return ContributionRequest(self.asked.without_payload)

    def run(self, model: Any) -> Any:
        """The run with its values kept.

        Raises:
            ValueError: also if a layer's output projection is not found.
        """
        with keeping_values():
            run = self.asked.run(model)
        return replace(run, trace=contribution_shares(run.trace, _network(model)))

    def groups(self, run: Any, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return self.asked.groups(run, labels)

    def for_transfer(self, run: Any) -> Any:
        return self.asked.for_transfer(run)


def _network(model: Any) -> nn.Module:
    """The network behind a model's face."""
    while not isinstance(model, nn.Module):
        model = next(getattr(model, name) for name in ("hub", "engine", "model") if hasattr(model, name))
    return model
