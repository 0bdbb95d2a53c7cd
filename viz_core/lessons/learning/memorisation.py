"""Learned by heart, then understood: when a run of modular addition came to each, and by which waves it adds."""

import numpy as np
import torch
from jaxtyping import Float

from viz_core.tasks.film import Film
from viz_core.tasks.frequencies import effective_number
from viz_core.tasks.generating import modular_pairs

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
