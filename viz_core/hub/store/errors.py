"""The one error of the hub."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from viz_core.runtime.refusal import RefusalError

Arguments, Result = ParamSpec("Arguments"), TypeVar("Result")


class HubError(RefusalError, ValueError):
    """A model that cannot be loaded or an input it cannot take; the message is for users."""


def attempt(work: Callable[Arguments, Result], *args: Arguments.args, **options: Arguments.kwargs) -> Result | HubError:
    """Return what `work` returns, or the HubError that it raises."""
    try:
        return work(*args, **options)
    except HubError as error:
        return error
