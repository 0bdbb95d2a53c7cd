"""Squeeze and excitation read as attention over channels, whose weights do not compete."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.weights import row_softmax

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
