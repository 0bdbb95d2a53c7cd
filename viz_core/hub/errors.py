"""The one error of the hub."""

from __future__ import annotations


class HubError(ValueError):
    """A model that cannot be had or an input it cannot take; the message is a sentence for a person."""
