"""The function that shows a run in a notebook. The package sets it, so that runs need not import the view."""

from collections.abc import Callable
from typing import Any

_viewers: list[Callable[[Any], Any]] = []


def set_viewer(viewer: Callable[[Any], Any]) -> None:
    """Set the function that `show` calls."""
    _viewers[:] = [viewer]


def show(run: Any) -> Any:
    """Return the attention view of a run."""
    return _viewers[0](run)
