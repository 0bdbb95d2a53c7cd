"""Approximate matches as attention: a kernel on the number of edits decides which keys answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernel_pooling import kernel_weights
from viz_core.attention.kernels import Kernel, boxcar, gaussian, with_width
from viz_core.lessons.queries_keys_values.edit_distance import edit_distance

_COLD = 0.05  # edits; a Gaussian this narrow is a softmax at nearly no temperature


def edit_kernels(most_edits: int) -> dict[str, Kernel]:
    """Three kernels on edits: 1 up to most_edits and 0 beyond; a Gaussian so narrow that the nearest wins; a wide one.

    The boxcar ends half an edit further, since edits are whole numbers and no width may be 0.
    """
    if most_edits < 0:
        raise ValueError(f"most_edits: expected at least 0, got {most_edits}")
    return {"boxcar": with_width(boxcar, most_edits + 0.5), "cold": gaussian(_COLD), "wide": gaussian(most_edits + 0.5)}


def edit_weights(
    query: str, keys: Sequence[str], kernel: Kernel, distance: Callable[[str, str], int] = edit_distance
) -> Float[Tensor, "keys"]:
    """a_j = K(edits_j) / sum_l K(edits_l): the weight of each key by how many edits it is away; zeros if none is near.

    (Dive into Deep Learning, section 11.1, exercise 1.)
    """
    edits = torch.tensor([[distance(query, key) for key in keys]], dtype=torch.float64)
    return kernel_weights(edits, kernel)[0]
