"""What works beside the models on the machines of a pool."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor

from serving.requests.request import Request
from serving.runners.remote_maps import MapServer
from serving.runners.remote_run import Outline, outline


class ModelServer(MapServer):
    """Asks models in this process, and tells a `RemoteRunner` of runs without their traces."""

    questions = ("load", "warm", "ask_model", "ask", "picture", "parts", "rows")
    """The methods that are asked by name, besides `outlines`, which go in batches."""

    def outlines(self, requests: list[Request[Any, Any]]) -> list[Outline | Exception]:
        """Runs without their traces."""
        made = zip(requests, self.run_all(requests), strict=True)
        return [run if isinstance(run, Exception) else outline(one, run) for one, run in made]

    def rows(
        self, request: Request[Any, Any], site: str, heads: slice, queries: slice
    ) -> Float[Tensor, "batch some_heads rows keys"]:
        """Exact weights of some heads and queries."""
        return self.run(request).trace[site].source.rows(heads, queries).cpu()
