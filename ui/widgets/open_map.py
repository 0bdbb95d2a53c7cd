"""The map that is open in an attention view, for downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from jaxtyping import Float
from torch import Tensor

from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState


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
    return group.calls[view.layer].weights(head=view.head)[group.row]
