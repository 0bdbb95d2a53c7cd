"""How far over the picture a patch attends: the mean distance, and the weight on the patches around it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.head_measure import Example, MapBlock, MapInfo, Measure
from viz_core.maps.measures import Patches, distances_of_rows

RADIUS = 2  # patches between centres


def _between_patches(block: MapBlock) -> tuple[Float[Tensor, "heads rows patches"], Float[Tensor, "rows patches"]]:
    """Weights and distances of the block's patches to all patches, without special tokens."""
    patches = block.info.patches
    assert patches is not None
    special = patches.num_special
    between = block.weights[:, max(0, special - block.first) :, special:]
    return between, patches.distances[max(0, block.first - special) :][: between.shape[1]]


def _distances(block: MapBlock) -> Float[Tensor, "heads 2"]:
    distances, attending = distances_of_rows(*_between_patches(block))
    return torch.stack([distances.sum(dim=-1), attending.sum(dim=-1)], dim=-1)


def _nearby(block: MapBlock) -> Float[Tensor, "heads 2"]:
    """Weight within the radius, and how many rows of patches."""
    weights, distances = _between_patches(block)
    inside = (weights * (distances <= RADIUS)).sum(dim=(-2, -1))
    return torch.stack([inside, torch.full_like(inside, len(distances))], dim=-1)


DISTANCE = Measure(
    name="distance",
    unit="patches",
    order=7,
    applies=lambda info: info.patches is not None,
    maximum=lambda info: 1.0 if info.patches is None else math.hypot(*info.patches.grid),  # the grid's diagonal
    sums=_distances,
    value=lambda sums, _: sums[:, 0] / sums[:, 1].clamp_min(1),
    example=Example(
        ((1.0, 0.0, 0.0), (0.0, 0.25, 0.75), (0.5, 0.0, 0.5)),
        0.375,
        MapInfo(3, 3, patches=Patches((1, 2), num_special=1)),
    ),
)
"""Mean distance in patches from a patch to the patches it attends to (`mean_attention_distance`)."""

NEARBY = Measure(
    name="nearby",
    unit="share",
    order=8,
    applies=lambda info: info.patches is not None,
    maximum=lambda _: 1.0,
    sums=_nearby,
    value=lambda sums, _: sums[:, 0] / sums[:, 1].clamp_min(1),
    names_heads=True,
    example=Example(
        (
            (1.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 0.25, 0.25, 0.25, 0.25),
            (0.5, 0.0, 0.0, 0.0, 0.5),
            (0.0, 0.25, 0.25, 0.0, 0.5),
            (0.0, 0.0, 0.0, 0.0, 1.0),
        ),
        0.8125,
        MapInfo(5, 5, patches=Patches((1, 4), num_special=1)),
    ),
)
"""Mean weight of a patch on the patches whose centres are at most two patches away, itself included."""
