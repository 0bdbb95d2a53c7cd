"""Attention maps whose queries and keys are in another process: the source that a view uses, and its server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from serving.compute.cache import MISSING
from serving.requests.request import RunRequest
from serving.runners.local_runner import LocalRunner
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import LayerPicture, Part, PartError, WeightsRequest


@dataclass(frozen=True)
class RemoteMaps:
    """The `MapSource` of a group whose queries and keys are in another process."""

    execute: Callable[..., Any]
    request: RunRequest[Any, Any]
    group: str

    def picture(self, layer: int) -> LayerPicture:
        picture: LayerPicture = self.execute("picture", self.request, self.group, layer)
        return picture

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Part | PartError]:
        parts: list[Part | PartError] = self.execute("parts", self.request, self.group, requests)
        return parts


class MapServer(LocalRunner):
    """Serves `RemoteMaps`."""

    def picture(self, request: RunRequest[Any, Any], group: str, layer: int) -> LayerPicture:
        """Return thumbnails and fingerprints of one layer of a group."""
        return self._groups(request)[group].picture(layer)

    def parts(
        self, request: RunRequest[Any, Any], group: str, parts: Sequence[WeightsRequest]
    ) -> list[Part | PartError]:
        """Return parts of a group's maps: whole maps, tiles, or rows of a token."""
        return self._groups(request)[group].maps.parts(parts)

    def _groups(self, request: RunRequest[Any, Any]) -> dict[str, MapGroup]:
        key = ("maps", request.without_payload)
        found = self._cache.get(key)
        if found is MISSING:
            found = {
                group.id: group for group in self.groups(request, defaultdict(str))
            }  # labels are added by the view
            self._cache.put(key, found)
        groups: dict[str, MapGroup] = found
        return groups
