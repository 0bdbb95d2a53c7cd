"""What a speech model's words attend to over time, and whether their times are in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.hub import HubModel, HubRun, TimedWord
from viz_core.hub.runs.sound_input import Head
from viz_core.hub.word_timestamps import sound_weights


def over_time(
    _model: HubModel, run: HubRun, heads: Sequence[Head], steps: tuple[int, int]
) -> tuple[Float[Tensor, " keys"], float]:
    """Attention of these steps over time, mean over heads and steps, and the sum on the silence after the sound.

    The rest is what they give to the silence that follows the sound: together they are 1.

    Args:
        heads: layer and head of cross-attention, from 0.
        steps: the first, and the one after the last.
    """
    weights = torch.stack([sound_weights(run, head, slice(*steps)) for head in heads]).mean(dim=(0, 1))
    return weights, max(0.0, 1 - float(weights.sum()))


def out_of_order(words: Sequence[TimedWord]) -> float:
    """The most seconds by which a word ends before it begins, or begins before the previous one; 0 if in order."""
    early = [word.start - word.end for word in words]
    back = [word.start - then.start for word, then in pairwise(words)]
    return max([0.0, *early, *back])
