"""A model that returns the process it runs in."""

import os
from dataclasses import dataclass

from serving.requests.models import ModelSpec, Progress


@dataclass(frozen=True)
class ProcessModel(ModelSpec[None]):
    """No model, with an affinity."""

    where: str

    @property
    def affinity(self) -> str:
        return self.where

    def load(self, progress: Progress | None) -> None:
        """Nothing."""


def process(_no_model: None) -> int:
    """Return the process id."""
    return os.getpid()
