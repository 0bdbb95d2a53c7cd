"""Groups of maps over pictures, for the attention view."""

from collections.abc import Mapping

import numpy as np

from viz_core.pretrained import Classification
from viz_core.view.map_group import MapGroup, MapPicture
from viz_core.view.state import DisplayOptions, ViewState
from viz_core.view.words import group_labels


def token_names(grid: tuple[int, int], num_special: int) -> tuple[str, ...]:
    """Class token, registers, then patches by row and column from 1: "[CLS]", "1, 1", "1, 2", ..."""
    special = ("[CLS]", *(f"[REG {i}]" for i in range(1, num_special)))[:num_special]
    return (*special, *(f"{row}, {column}" for row in range(1, grid[0] + 1) for column in range(1, grid[1] + 1)))


def picture_groups(found: Classification, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
    """Self-attention of all layers, over the picture as the model saw it.

    Args:
        labels: names "self", "queries" and "keys".
    """
    names = token_names(found.grid, found.num_special)
    pixels = np.asarray(found.prepared.seen.convert("RGB"))
    picture = MapPicture(pixels, found.grid, found.num_special)
    sides = labels["self"], labels["queries"], labels["keys"]
    return (MapGroup("encoder-self", *sides, names, names, tuple(found.trace), seen=picture, made=found.made),)


def open_run(found: Classification, language: str) -> tuple[tuple[MapGroup, ...], ViewState]:
    """Self-attention over the picture and the head that opens first, named as in the app."""
    groups = picture_groups(found, group_labels("vision-transformer", language))
    return groups, initial_state(groups)


def initial_state(groups: tuple[MapGroup, ...]) -> ViewState:
    """State that opens first: the last layer but one, whose heads attend to objects."""
    return ViewState(
        groups[0].id, max(0, len(groups[0].calls) - 2), 0, display=DisplayOptions(mode="picture", scale="linear")
    )
