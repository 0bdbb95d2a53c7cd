"""What a recorded run shows: each head in one number."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.contribution_shares import ContributionShares, longest
from viz_core.maps.measures import attention_entropy, diagonal_mass, induction_mass, key_mass, offset_mass
from viz_core.tasks.film import BLANK, Film
from viz_core.trace.source import Direct

HEAD_MEASURES = ("induction", "previous", "diagonal", "first", "entropy")


def head_measures(film: Film, since: int = 0) -> dict[str, Float[np.ndarray, "shots layers heads"]]:
    """Every measure of every head of the probe at every shot from one on; no induction where no token comes twice.

    Weights on the token that followed the same token before, on the token before, on itself and on the first token, 0
    to 1, and the entropy in bits, all as means over queries.
    """
    weights = shot_weights(film, slice(since, None))
    # What is blank is the same everywhere, and no place that was seen before.
    tokens = [token if token != BLANK else place for place, token in enumerate(film.read)]
    found = {
        "induction": induction_mass(weights, tokens) if len(set(tokens)) < len(tokens) else None,
        "previous": offset_mass(weights, -1),
        "diagonal": diagonal_mass(weights),
        "first": key_mass(weights, [0]),
        "entropy": attention_entropy(weights).mean(dim=-1),
    }
    return {name: measured.numpy() for name, measured in found.items() if measured is not None}


def shot_weights(film: Film, shots: int | slice) -> Float[Tensor, "*shots layers heads n n"]:
    """The maps of a shot, or of several, in float32; every row sums to 1 again."""
    weights = torch.from_numpy(film.maps[shots].astype(np.float32))
    return weights / weights.sum(dim=-1, keepdim=True)


def shares_at(film: Film, shot: int, in_lengths: bool = False) -> list[ContributionShares]:
    """What each key's share of what a head adds was at a shot, a source of maps for each layer.

    Args:
        in_lengths: lengths in place of shares, on one scale for all shots.
    """
    unit = longest([torch.from_numpy(film.lengths.astype(np.float32))]) if in_lengths else None
    lengths = torch.from_numpy(film.lengths[shot].astype(np.float32))
    layers = zip(shot_weights(film, shot)[:, None], lengths[:, None], strict=True)
    return [ContributionShares(Direct(weights), vectors, unit) for weights, vectors in layers]


_RIGHT = 0.99
