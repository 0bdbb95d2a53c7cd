"""Which head is open and which token is pinned: the state of an attention view, as a value and as a link."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeGuard

from viz_core.figures.map_group import MapGroup

Axis = Literal["query", "key"]
_AXES: dict[str, Axis] = {"q": "query", "k": "key"}


@dataclass(frozen=True)
class Pin:
    """A token held fast: a query (its row is read) or a key (its column is)."""

    axis: Axis
    index: int

    def __str__(self) -> str:
        """ "q10" or "k3", as it stands in a link."""
        return f"{self.axis[0]}{self.index}"


@dataclass(frozen=True)
class ViewState:
    """The opened head: its group's id, its layer and head counted from 0, and the pinned token if any."""

    group: str
    layer: int
    head: int
    pin: Pin | None = None

    @property
    def address(self) -> str:
        """ "cross.2.5", as it stands in a link."""
        return f"{self.group}.{self.layer}.{self.head}"

    def fits(self, groups: Sequence[MapGroup]) -> bool:
        """Whether these groups have that head and that token."""
        group = next((group for group in groups if group.id == self.group), None)
        if group is None or not 0 <= self.layer < len(group.calls):
            return False
        if not 0 <= self.head < group.calls[self.layer].num_heads:
            return False
        if self.pin is None:
            return True
        tokens = group.query_tokens if self.pin.axis == "query" else group.key_tokens
        return 0 <= self.pin.index < len(tokens)


def read_link(
    head: str | None, pin: str | None, groups: Sequence[MapGroup], default: ViewState
) -> tuple[ViewState, bool]:
    """The state that a link asks for, and whether all of it could be had.

    Links are written by anyone: what is malformed, absent from these groups or out of range gives
    the default, a bad pin on a good head gives the head without it.

    Args:
        head: an address such as "cross.2.5", None where the link has none.
        pin: "q10" or "k3", None where the link has none.
        groups: the maps there are.
        default: the head to open where the link names none, or none that there is.
    """
    state = default
    if head is not None:
        parts = re.fullmatch(r"([a-z0-9_-]{1,32})\.([0-9]{1,4})\.([0-9]{1,4})", head)
        if parts is None:
            return default, False
        state = ViewState(parts[1], int(parts[2]), int(parts[3]))
        if not state.fits(groups):
            return default, False
    if pin is None:
        return state, True
    parts = re.fullmatch("([qk])([0-9]{1,6})", pin)
    if parts is not None:
        pinned = replace(state, pin=Pin(_AXES[parts[1]], int(parts[2])))
        if pinned.fits(groups):
            return pinned, True
    return state, False


def write_link(state: ViewState, default: ViewState) -> tuple[str | None, str | None]:
    """What a link to this state holds for head and pin: nothing for the default, so that plain links stay plain."""
    if state == default:
        return None, None
    return state.address, None if state.pin is None else str(state.pin)


def read_message(message: object, groups: Sequence[MapGroup]) -> ViewState | None:
    """The state a browser reports, {"group", "layer", "head", "pin": {"axis", "index"} or None}.

    None where it is no such thing or these groups have no such head; a pin that these tokens do
    not have is left out (the sentence may have become shorter since).
    """
    if not isinstance(message, dict):
        return None
    group, layer, head, pin = message.get("group"), message.get("layer"), message.get("head"), message.get("pin")
    if not isinstance(group, str) or not _is_index(layer) or not _is_index(head):
        return None
    state = ViewState(group, layer, head)
    if not state.fits(groups):
        return None
    if isinstance(pin, dict) and pin.get("axis") in _AXES.values() and _is_index(pin.get("index")):
        pinned = replace(state, pin=Pin(pin["axis"], pin["index"]))
        state = pinned if pinned.fits(groups) else state
    return state


def _is_index(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
