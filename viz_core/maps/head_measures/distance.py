"""Mean distance in patches from a patch to the patches it attends to (`mean_attention_distance`)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.distance import Patches, distances_of_rows
from viz_core.maps.head_measure import Example, MapBlock, MapInfo, Measure


def _sums(block: MapBlock) -> Float[Tensor, "heads 2"]:
    patches = block.info.patches
    assert patches is not None
    special = patches.num_special
    between = block.weights[:, max(0, special - block.first) :, special:]
    rows = patches.distances[max(0, block.first - special) :][: between.shape[1]]
    distances, attending = distances_of_rows(between, rows)
    return torch.stack([distances.sum(dim=-1), attending.sum(dim=-1)], dim=-1)


MEASURE = Measure(
    name="distance",
    unit="patches",
    order=7,
    applies=lambda info: info.patches is not None,
    maximum=lambda info: 1.0 if info.patches is None else math.hypot(*info.patches.grid),  # the grid's diagonal
    sums=_sums,
    value=lambda sums, _: sums[:, 0] / sums[:, 1].clamp_min(1),
    example=Example(
        ((1.0, 0.0, 0.0), (0.0, 0.25, 0.75), (0.5, 0.0, 0.5)),
        0.375,
        MapInfo(3, 3, patches=Patches((1, 2), num_special=1)),
    ),
)
