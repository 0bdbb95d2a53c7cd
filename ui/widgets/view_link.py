"""The state of an attention view as three query parameters (head, pin and look), its clicked cell and its open map."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypedDict

from jaxtyping import Float
from torch import Tensor

from viz_core.trace.edits import is_nonnegative
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import read_pins
from viz_core.view.state import ViewState, read_display


@dataclass(frozen=True)
class ViewLink:
    """Query parameters of a view; None where absent.

    Attributes:
        head: the opened head, its group, layer and head from 0 ("cross.2.5").
        pin: pinned tokens, queries or keys ("q10" or "k3.k4").
        look: what differs from the look a view has at first ("mode-links~scale-log").
    """

    head: str | None = None
    pin: str | None = None
    display: str | None = None


def read_link(link: ViewLink, groups: Sequence[MapGroup], default: ViewState) -> tuple[ViewState, bool]:
    """Return the state that a link describes, and whether all of it was valid.

    Links are written by anyone: what is malformed, absent from these groups or out of range gives
    the default, a bad pin or look on a good head gives the head without it.
    """
    state, understood = default, True
    if link.head is not None:
        parts = re.fullmatch(r"([a-z0-9_-]{1,32})\.([0-9]{1,4})\.([0-9]{1,4})", link.head)
        # Neither pins nor chosen heads of the default belong to another head.
        if parts is None:
            return default, False
        state = ViewState(parts[1], int(parts[2]), int(parts[3]), display=default.display)
        if not state.fits(groups):
            return default, False
    if link.pin is not None:
        pins = read_pins(link.pin)
        pinned = replace(state, pins=pins or ())
        understood = pins is not None and pinned.fits(groups)
        state = pinned if understood else state
    if link.display is not None:
        words = dict(item.split("-", 1) for item in link.display[:400].split("~") if "-" in item)
        display, known = read_display(words, state.display)
        shown = replace(state, display=display)
        fits = shown.fits(groups)
        understood = understood and known and fits and bool(words)
        state = shown if fits else state
    return state, understood


def write_link(state: ViewState, default: ViewState) -> ViewLink:
    """Return the link to this state, without what equals the default."""
    head = f"{state.group}.{state.layer}.{state.head}"
    head_changed = (state.group, state.layer, state.head, state.pins) != (
        default.group,
        default.layer,
        default.head,
        default.pins,
    )
    before = asdict(default.display)
    display = [f"{name}-{value}" for name, value in asdict(state.display).items() if value != before[name]]
    return ViewLink(
        head if head_changed else None,
        ".".join(map(str, state.pins)) or None if head_changed else None,
        "~".join(display) or None,
    )


@dataclass(frozen=True)
class Cell:
    """A pair that a reader clicked in the map of a group; `click` differs between any two clicks."""

    click: str
    group: str
    query: int
    key: int


def read_cell(message: object, groups: Sequence[MapGroup]) -> Cell | None:
    """The last cell that a browser says was clicked: {"cell": {"id", "group", "query", "key"}}.

    None where it says nothing of the kind, or these groups have no such pair.
    """
    cell = message.get("cell") if isinstance(message, Mapping) else None
    if not isinstance(cell, Mapping):
        return None
    click, query, key = cell.get("id"), cell.get("query"), cell.get("key")
    group = next((group for group in groups if group.id == cell.get("group")), None)
    if group is None or not isinstance(click, str) or not is_nonnegative(query) or not is_nonnegative(key):
        return None
    there = query < len(group.query_tokens) and key < len(group.key_tokens)
    return Cell(click[:64], group.id, query, key) if there else None


class OpenTokens(TypedDict):
    """The tokens of the rows and columns of a map."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]


def open_tokens(groups: Sequence[MapGroup], view: ViewState) -> OpenTokens:
    """Return the tokens of the opened map's rows and columns."""
    group = next(group for group in groups if group.id == view.group)
    return OpenTokens(rows=group.query_tokens, columns=group.key_tokens)


def open_map(groups: Sequence[MapGroup], view: ViewState) -> Float[Tensor, "queries keys"]:
    """The exact weights of the opened head."""
    group = next(group for group in groups if group.id == view.group)
    return group.weights(view.layer, view.head)
