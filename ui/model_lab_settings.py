"""What whoever runs the model lab allows: any model by default, chosen ones where it is hosted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

HOSTED_TOKENS = 2048
_SECONDS = 60.0


@dataclass(frozen=True)
class LabSettings:
    """What visitors may do.

    Attributes:
        models: the only ones there are; () for any, typed freely.
        folders: whose models may be named.
        max_tokens: most a text may have; None for what the model takes.
        max_seconds: a model writes no longer.
    """

    models: tuple[str, ...]
    folders: tuple[Path, ...]
    max_tokens: int | None
    max_seconds: float

    @property
    def hosted(self) -> bool:
        return bool(self.models)


def lab_settings() -> LabSettings:
    """From ATLAS_MODELS (names with commas between them) and ATLAS_MODEL_FOLDERS (as in PATH)."""
    models = tuple(filter(None, map(str.strip, os.environ.get("ATLAS_MODELS", "").split(","))))
    folders = tuple(Path(part) for part in os.environ.get("ATLAS_MODEL_FOLDERS", "").split(os.pathsep) if part.strip())
    return LabSettings(models, folders, HOSTED_TOKENS if models else None, _SECONDS)
