"""Loaded models."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, TypeVar

from serving.models.model_spec import ModelAdapter, ModelSpec, Progress

Loaded = TypeVar("Loaded")


class ModelRegistry:
    """Loads each model once. Of each kind at most `max_loaded` stay; the least recently used are dropped."""

    def __init__(self) -> None:
        self._models: dict[ModelSpec[Any], Future[Any]] = {}  # the last used one last
        self._lock = threading.Lock()

    def __call__(self, model: ModelSpec[Loaded], progress: Progress | None = None) -> Loaded:
        """Return the loaded model.

        Raises:
            ValueError: if it cannot be loaded or run; the next call tries again.
        """
        if isinstance(model, ModelAdapter):
            return model.adapt(self(model.adapted, progress))
        with self._lock:
            found = self._models.pop(model, None)
            loaded = self._models[model] = found or Future()
            same_kind = [other for other in self._models if type(other) is type(model)]
            for unused in same_kind[: -model.max_loaded]:
                del self._models[unused]
        if found is None:
            try:
                loaded.set_result(model.load(progress))
            except BaseException as error:
                with self._lock:
                    if self._models.get(model) is loaded:
                        del self._models[model]
                loaded.set_exception(error)
        return loaded.result()

    def __contains__(self, model: ModelSpec[Any]) -> bool:
        """Return whether the model is loaded, or being loaded."""
        with self._lock:
            return model in self._models
