"""Provenance of a result: the model and its input, written into files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Provenance:
    """The model that computed a result, and its input; "" where unknown."""

    model: str = ""  # its name
    revision: str = ""  # its version: a commit, a package's version, or the start of the checksum of its weights
    text: str = ""  # its input, if that was text


UNKNOWN = Provenance()
"""Nothing is known."""
