"""Provenance of a result: the model and its input, written into files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Provenance:
    """The model that computed a result, and its input; "" where unknown.

    Attributes:
        model: its name.
        revision: its version: a commit, a package's version, or the start of the checksum of its weights.
        text: its input, if that was text.
    """

    model: str = ""
    revision: str = ""
    text: str = ""


UNKNOWN = Provenance()
"""Nothing is known."""
