"""What position schemes get right past the length they were trained to, beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float

PUBLISHED: Mapping[str, Mapping[str, float]] = {
    # Mean reciprocal rank past length 20 on small tasks, the higher the better (Kazemnejad 2023).
    "kazemnejad": {"none": 0.69, "t5": 0.55, "alibi": 0.50, "rotary": 0.33, "sinusoidal": 0.22},
    # Perplexity of English at 3,512 tokens, trained at 512: the lower the better, so its negative (Press 2022).
    "press": {"sinusoidal": -178.97, "rotary": -35.54, "t5": -22.91, "alibi": -18.40},
}
"""What others measured, by scheme; the larger the better."""

PAPERS = {"kazemnejad": "Kazemnejad 2023", "press": "Press 2022"}


@dataclass(frozen=True, eq=False)
class Reach:
    """One scheme's accuracy by length: mean of its seeds, and the lowest and highest of them.

    Attributes:
        past: mean accuracy of each seed over all lengths that are longer than any trained on.
    """

    scheme: str
    lengths: tuple[int, ...]
    seeds: Float[np.ndarray, "seeds lengths"]
    longest: int

    @property
    def mean(self) -> Float[np.ndarray, " lengths"]:
        """Of all seeds."""
        return self.seeds.mean(axis=0)

    @property
    def low(self) -> Float[np.ndarray, " lengths"]:
        """The lowest seed at each length."""
        return self.seeds.min(axis=0)

    @property
    def high(self) -> Float[np.ndarray, " lengths"]:
        """The highest seed at each length."""
        return self.seeds.max(axis=0)

    def _of(self, chosen: Sequence[bool]) -> Float[np.ndarray, " seeds"]:
        return self.seeds[:, np.array(chosen)].mean(axis=1)

    @property
    def past(self) -> Float[np.ndarray, " seeds"]:
        """Each seed's mean over lengths that are longer than any trained on."""
        return self._of([length > self.longest for length in self.lengths])

    @property
    def within(self) -> Float[np.ndarray, " seeds"]:
        """Each seed's mean over lengths that were trained on."""
        return self._of([length <= self.longest for length in self.lengths])


def read_reaches(recorded: Mapping[str, Any]) -> dict[str, Reach]:
    """Every scheme's reach, the best past its length first, of what the recording command wrote."""
    lengths, longest = tuple(recorded["lengths"]), recorded["plan"]["longest"]
    found = [
        Reach(scheme, lengths, np.array(list(seeds.values()), np.float64), longest)
        for scheme, seeds in recorded["accuracy"].items()
        if seeds
    ]
    return {each.scheme: each for each in sorted(found, key=lambda each: -float(each.past.mean()))}


def published_order(paper: str) -> list[str]:
    """Schemes as a paper orders them, the best first."""
    return sorted(PUBLISHED[paper], key=lambda scheme: -PUBLISHED[paper][scheme])


def turned_round(reaches: Mapping[str, Reach], paper: str) -> list[tuple[str, str]]:
    """Pairs of schemes that every seed of ours orders otherwise than a paper does: first the one that is ahead here.

    A pair counts where the lowest seed of the one is above the highest of the other.
    """
    order = [scheme for scheme in published_order(paper) if scheme in reaches]
    return [
        (behind, ahead)
        for ahead, behind in combinations(order, 2)
        if reaches[behind].past.min() > reaches[ahead].past.max()
    ]
