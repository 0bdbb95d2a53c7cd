"""The models that are loaded."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, TypeVar

from serving.models.model_spec import ModelAdapter, ModelSpec, Progress

Loaded = TypeVar("Loaded")


class ModelRegistry:
    """Loaded models, each loaded once, by whoever asks first. The longest unused of a kind go where there are many."""

    def __init__(self) -> None:
        self._models: dict[ModelSpec[Any], Future[Any]] = {}  # the last used one last
        self._lock = threading.Lock()

    def __call__(self, model: ModelSpec[Loaded], progress: Progress | None = None) -> Loaded:
        """The model itself.

        Raises:
            ValueError: if it cannot be had or run; the next who asks tries again.
        """
        if isinstance(model, ModelAdapter):
            return model.adapt(self(model.adapted, progress))
        with self._lock:
            found = self._models.pop(model, None)
            loaded = self._models[model] = found or Future()
            alike = [other for other in self._models if type(other) is type(model)]
            for unused in alike[: -model.most_loaded]:
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
        """Whether it is loaded, or being loaded."""
        with self._lock:
            return model in self._models
