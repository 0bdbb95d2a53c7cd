"""Work beside the models, in worker processes and on the machines of a pool."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor

from serving.requests.request import RunRequest
from serving.runners.remote_maps import MapServer
from serving.runners.remote_run import Outline, outline


class ModelServer(MapServer):
    """Runs models in this process for a `RemoteRunner`, to which it returns runs without their traces."""

    methods = ("load", "warm", "evaluate_model", "evaluate", "picture", "parts", "rows")
    """Methods that can be called by name; outlines are batched instead."""

    def outlines(self, requests: list[RunRequest[Any, Any]]) -> list[Outline | Exception]:
        """Return runs without their traces, or errors."""
        runs = zip(requests, self.run_all(requests), strict=True)
        return [run if isinstance(run, Exception) else outline(one, run) for one, run in runs]

    def rows(
        self, request: RunRequest[Any, Any], site: str, heads: slice, queries: slice
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return exact weights of some heads and queries."""
        return self.run(request).trace[site].source.rows(heads, queries).cpu()
