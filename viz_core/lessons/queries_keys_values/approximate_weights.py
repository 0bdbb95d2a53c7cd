"""Approximate matches as attention: a kernel on the number of edits decides which keys answer."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernel_pooling import kernel_weights
from viz_core.attention.kernels import Kernel, boxcar, gaussian, with_width
from viz_core.lessons.queries_keys_values.lookup import approximate_lookup, edit_distance

_CLOSE = 0.01  # of the weight that a key should have
_COLD = 0.05  # edits; a Gaussian this narrow is a softmax at nearly no temperature


def edit_kernels(most_edits: int) -> dict[str, Kernel]:
    """Three kernels on edits: 1 up to most_edits and 0 beyond; a Gaussian so narrow that the nearest wins; a wide one.

    The boxcar ends half an edit further, since edits are whole numbers and no width may be 0.
    """
    return {"boxcar": with_width(boxcar, most_edits + 0.5), "cold": gaussian(_COLD), "wide": gaussian(most_edits + 0.5)}


def edit_weights(
    query: str, keys: Sequence[str], kernel: Kernel, distance: Callable[[str, str], int] = edit_distance
) -> Float[Tensor, " keys"]:
    """a_j = K(edits_j) / sum_l K(edits_l): the weight of each key by how many edits it is away; zeros if none is near.

    (Dive into Deep Learning, section 11.1, exercise 1.)
    """
    edits = torch.tensor([[distance(query, key) for key in keys]], dtype=torch.float64)
    return kernel_weights(edits, kernel)[0]


def count_matching_limits(query: str, keys: Sequence[str], limits: Iterable[int]) -> dict[str, int]:
    """For how many edit limits each kernel gives equal weights to the keys within the limit, and none to the others."""
    counts = Counter(dict.fromkeys(edit_kernels(0), 0))
    for most in limits:
        found = [each.place for each in approximate_lookup(query, keys, most)]
        equal = torch.zeros(len(keys), dtype=torch.float64)
        equal[found] = 1 / max(1, len(found))
        for name, kernel in edit_kernels(most).items():
            counts[name] += int((edit_weights(query, keys, kernel) - equal).abs().max() <= _CLOSE)
    return dict(counts)
