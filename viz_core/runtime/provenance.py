"""Which model made something, of which input: what a file says of it wherever it goes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Provenance:
    """Which model made something, of which input; "" where that is not known, or no text.

    Attributes:
        model: its name.
        revision: which version of it: a commit, a package's version, or how the checksum of its weights begins.
        text: what it read.
    """

    model: str = ""
    revision: str = ""
    text: str = ""


UNKNOWN = Provenance()
"""Nobody said."""
