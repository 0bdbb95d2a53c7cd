"""Addresses of the project for the wheel, from one setting: ATLAS_REPOSITORY, where the repository is published."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Addresses(MetadataHookInterface):
    """Sets `urls`, which pyproject.toml declares as dynamic; none without the setting."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses."""
        repository = os.environ.get("ATLAS_REPOSITORY", "").rstrip("/")
        paths = {"Source": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"} if repository else {}
        metadata["urls"] = {name: repository + path for name, path in paths.items()}
