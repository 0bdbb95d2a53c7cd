"""The book's exercises: approximate matches as attention, derivatives, learning from clicks, gates of channels."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.kernel_pooling import Kernel, boxcar, gaussian, kernel_weights, with_width
from viz_core.lessons.queries_keys_values.lookup import approximate_lookup, edit_distance
from viz_core.trace import attention_weights
from viz_core.trace.weights import row_softmax

_CLOSE = 0.01  # of the weight that a key should have
_COLD = 0.05  # edits; a Gaussian this narrow is a softmax at nearly no temperature


def edit_kernels(max_edits: int) -> dict[str, Kernel]:
    """Three kernels on edits: 1 up to max_edits and 0 beyond; a Gaussian so narrow that the nearest wins; a wide one.

    The boxcar ends half an edit further, since edits are whole numbers and no width may be 0.
    """
    return {"boxcar": with_width(boxcar, max_edits + 0.5), "cold": gaussian(_COLD), "wide": gaussian(max_edits + 0.5)}


def edit_weights(query: str, keys: Sequence[str], kernel: Kernel) -> Float[Tensor, " keys"]:
    """a_j = K(edits_j) / sum_l K(edits_l): the weight of each key by how many edits it is away; zeros if none is near.

    (Dive into Deep Learning, section 11.1, exercise 1.)
    """
    edits = torch.tensor([[edit_distance(query, key) for key in keys]], dtype=torch.float64)
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


Vector: TypeAlias = Float[Tensor, " d"]
Keys: TypeAlias = Float[Tensor, "keys d"]


def pooled(query: Vector, keys: Keys, temperature: float = 1.0) -> Vector:
    """sum_i a_i k_i with a = softmax(K q / T): the keys are their own values."""
    return query_weights(query, keys, temperature) @ keys


def query_jacobian(query: Vector, keys: Keys, temperature: float = 1.0) -> Float[Tensor, "d d"]:
    """d output / d query of `pooled`, by automatic differentiation."""
    return torch.func.jacrev(lambda q: pooled(q, keys, temperature))(query)


def weighted_covariance(query: Vector, keys: Keys, temperature: float = 1.0) -> Float[Tensor, "d d"]:
    """sum_i a_i (k_i - m)(k_i - m)^T with m = sum_i a_i k_i; divided by T it is the Jacobian of `pooled`.

    (Dive into Deep Learning, section 11.1, exercise 2.)
    """
    weights = query_weights(query, keys, temperature)
    centred = keys - weights @ keys
    return centred.T @ (weights[:, None] * centred)


def query_weights(query: Vector, keys: Keys, temperature: float) -> Float[Tensor, " keys"]:
    """a = softmax(K q / T)."""
    return attention_weights(query[None, None, None], keys[None, None], scale=1 / temperature)[0, 0, 0]


_RATE = 0.25  # of the way that the gradient at temperature 1 shows


def click_loss(query: Vector, documents: Keys, clicked: int, temperature: float = 1.0) -> Float[Tensor, ""]:
    """-log a_c with a = softmax(K q / T): small where the document that was clicked has most of the weight."""
    return -query_weights(query, documents, temperature)[clicked].log()


def ranks_while_learning(
    query: Vector, documents: Keys, clicked: int, temperature: float = 1.0, steps: int = 20
) -> list[int]:
    """Rank of the clicked document, 1 for the first, before and after each step down the gradient of its loss.

    Ties count against it (Dive into Deep Learning, section 11.1, exercise 3).
    """
    ranks = []
    for _ in range(steps + 1):
        scores = documents @ query
        ranks.append(int((scores >= scores[clicked] - 1e-12).sum()))
        gradient = torch.func.grad(lambda q: click_loss(q, documents, clicked, temperature))(query)
        query = query - _RATE * temperature * gradient
    return ranks


Channels = Float[Tensor, "channels"]
Picture = Float[Tensor, "channels places"]
_CHANNELS, _HIDDEN, _PLACES = 8, 4, 36
_MORE = 2.0  # what is added to the score of one channel


def two_pictures(seed: int = 7) -> tuple[Picture, Picture]:
    """Features of two pictures, 8 channels at 36 places, each channel with a mean of its own."""
    generator = torch.Generator().manual_seed(seed)
    first, second = (
        torch.randn(_CHANNELS, _PLACES, generator=generator) + 2 * torch.randn(_CHANNELS, 1, generator=generator)
        for _ in range(2)
    )
    return first, second


def channel_scores(picture: Picture, seed: int = 0) -> Channels:
    """W_2 relu(W_1 z), with z the mean of each channel over all places (the squeeze) and random W_1 and W_2."""
    generator = torch.Generator().manual_seed(seed)
    W_1, W_2 = (torch.randn(*shape, generator=generator) for shape in ((_HIDDEN, _CHANNELS), (_CHANNELS, _HIDDEN)))
    return W_2 @ (W_1 @ picture.mean(dim=1) / _CHANNELS**0.5).relu()


def channel_gates(scores: Channels) -> Channels:
    """sigmoid(s_c): by how much each channel is multiplied (the excitation; Hu 2018, equations 2 to 4)."""
    return torch.sigmoid(scores)


def taken_from_others(scores: Channels, by_softmax: bool) -> float:
    """By how much the other channels' weights fall in all where the first one scores 2 more: gates, or a softmax."""
    weigh = (lambda s: row_softmax(s[None])[0]) if by_softmax else channel_gates
    more = scores.clone()
    more[0] += _MORE
    return float((weigh(scores)[1:] - weigh(more)[1:]).sum())
