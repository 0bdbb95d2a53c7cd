"""Pinned tokens, and their form in links and messages: "q10", "k3.k4"."""

import re
from dataclasses import dataclass
from typing import Literal

Axis = Literal["query", "key"]
AXES: dict[str, Axis] = {"q": "query", "k": "key"}


@dataclass(frozen=True)
class Pin:
    """A pinned token: a query (its row is read) or a key (its column is read)."""

    axis: Axis
    index: int

    def __str__(self) -> str:
        """ "q10" or "k3", as it stands in a link."""
        return f"{self.axis[0]}{self.index}"


def read_pins(text: str) -> tuple[Pin, ...] | None:
    """ "q10.q11" as pins; None where it is no such thing."""
    if not re.fullmatch(r"[qk][0-9]{1,6}(?:\.[qk][0-9]{1,6})*", text):
        return None
    return tuple(dict.fromkeys(Pin(AXES[pin[0]], int(pin[1:])) for pin in text.split(".")))
