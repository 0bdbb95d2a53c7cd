"""The one error of the hub."""

from viz_core.runtime.refusal import RefusalError


class HubError(RefusalError, ValueError):
    """A model that cannot be loaded or an input it cannot take; the message is for users."""
