"""Maps whose queries and keys lie on another machine: how an attention view asks for them, and who answers there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from serving.compute.cache import MISSING
from serving.requests.request import Request
from serving.runners.local_runner import LocalRunner
from viz_core.view.map_group import MapGroup
from viz_core.view.map_source import LayerPicture, Part, PartError
from viz_core.view.requests import WeightsRequest


@dataclass(frozen=True)
class RemoteMaps:
    """The `MapSource` of a group whose queries and keys lie elsewhere."""

    ask: Callable[..., Any]
    request: Request[Any, Any]
    group: str

    def picture(self, layer: int) -> LayerPicture:
        picture: LayerPicture = self.ask("picture", self.request, self.group, layer)
        return picture

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Part | PartError]:
        parts: list[Part | PartError] = self.ask("parts", self.request, self.group, requests)
        return parts


class MapServer(LocalRunner):
    """Beside the models: what `RemoteMaps` are asked for."""

    def picture(self, request: Request[Any, Any], group: str, layer: int) -> LayerPicture:
        """One layer of a group of maps: thumbnails and fingerprints."""
        return self._groups(request)[group].picture(layer)

    def parts(self, request: Request[Any, Any], group: str, wanted: Sequence[WeightsRequest]) -> list[Part | PartError]:
        """Parts of a group's maps: whole ones, tiles, a token's rows."""
        return self._groups(request)[group].maps.parts(wanted)

    def _groups(self, request: Request[Any, Any]) -> dict[str, MapGroup]:
        key = ("maps", request.without_payload)
        found = self._cache.get(key)
        if found is MISSING:
            found = {group.id: group for group in self.groups(request, defaultdict(str))}  # names are for people
            self._cache.put(key, found)
        groups: dict[str, MapGroup] = found
        return groups
