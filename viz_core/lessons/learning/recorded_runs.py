"""What a recorded run shows: each head in one number, and when what was learned by heart was understood."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.contribution_shares import ContributionShares, longest
from viz_core.maps.measures import attention_entropy, diagonal_mass, induction_mass, key_mass, offset_mass
from viz_core.tasks.film import BLANK, Film
from viz_core.tasks.frequencies import effective_number
from viz_core.tasks.generating import modular_pairs
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
_AVERAGED = 10  # updates before a shot


def memorised_at(film: Film) -> int | None:
    """The first shot at which 99% of what is trained on is right, as a mean of the ten updates before; None if none."""
    for place, step in enumerate(film.shots):
        if step >= _AVERAGED and film.accuracy[step - _AVERAGED : step].mean() >= _RIGHT:
            return place
    return None


def understood(film: Film, right: float = 0.95) -> int | None:
    """The first shot from which so much of what was never trained on stays right; None if it never does."""
    short = np.flatnonzero(film.held_out < right)
    first = int(short[-1]) + 1 if len(short) else 0
    return first if first < len(film.shots) else None


def mirrored_share() -> float:
    """Share of held-out pairs a + b whose mirror b + a is trained on: who knows that order is nothing knows them."""
    trained = {tuple(pair) for pair in modular_pairs(held_out=False).tolist()}
    others = modular_pairs(held_out=True).tolist()
    return sum((b, a) in trained for a, b in others) / len(others)


def main_frequencies(spectrum: Float[np.ndarray, " frequencies"], share: float = 0.9) -> list[int]:
    """The fewest frequencies, counted from 1, that carry this share of an embedding; the strongest first."""
    order = np.argsort(-spectrum.astype(np.float64), kind="stable")
    carried = np.cumsum(spectrum.astype(np.float64)[order])
    return [int(k) + 1 for k in order[: int(np.searchsorted(carried, share)) + 1]]


def waves_in_use(film: Film, shot: int) -> float:
    """Of how many equally strong frequencies the embedding is worth at a shot (`effective_number`)."""
    return effective_number(torch.from_numpy(film.spectra[shot].astype(np.float32)))
