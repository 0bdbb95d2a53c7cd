"""Cells that a reader clicks in the maps of the attention view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viz_core.trace.edits import is_nonnegative
from viz_core.view.map_group import MapGroup


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
