"""A recorded run with the measures of its heads and the maps of each snapshot, computed once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

import numpy as np
import streamlit as st
from jaxtyping import Float

from pages.learning.jumps import strongest_head
from ui.text.words import Words
from viz_core.lessons.learning.recorded_runs import head_measures, shares_at, shot_weights
from viz_core.maps.contribution_shares import ContributionKind
from viz_core.runtime.assets import ASSETS, reading
from viz_core.tasks.film import Film, load_film
from viz_core.trace import AttentionCall
from viz_core.trace.source import Direct, Source
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

RECORDED = ASSETS / "learning"
GROUP = "self"


class MeasuredRun:
    """A recording, the measures of its heads, and one group of maps per snapshot shown.

    Args:
        earlier: of the same run when it was shorter; its maps are still those of their shots.
    """

    def __init__(self, film: Film, earlier: MeasuredRun | None = None) -> None:
        self.film = film
        self._groups: dict[tuple[int, str, ContributionKind], MapGroup] = {} if earlier is None else earlier._groups
        self._known = {} if earlier is None else earlier.measures
        self._opened = None if earlier is None else earlier.opens_with

    @cached_property
    def measures(self) -> dict[str, Float[np.ndarray, "shots layers heads"]]:
        """Every measure of every head at every shot."""
        known = len(next(iter(self._known.values()), ()))
        if known == len(self.film.shots):
            return self._known
        found = head_measures(self.film, known)
        return {name: np.concatenate([self._known[name], new]) if known else new for name, new in found.items()}

    def shot(self, step: int) -> int:
        """The last shot that was taken by this step."""
        return max(0, bisect_right(self.film.shots, step) - 1)

    def group(self, shot: int, words: Words, contribution_kind: ContributionKind = "") -> MapGroup:
        """The maps of every head at a snapshot; the same object at each call, so that its numbers are sent once.

        Args:
            contribution_kind: of what each key adds in place of its weight, as shares or as lengths.
        """
        label = words("maps-of", step=f"{self.film.shots[shot]:,}")
        key = shot, label, contribution_kind
        if key not in self._groups:
            weights = shot_weights(self.film, shot)[:, None]
            in_lengths = contribution_kind == "lengths"
            shares = shares_at(self.film, shot, in_lengths) if contribution_kind else None
            sources: Iterable[Source] = map(Direct, weights) if shares is None else shares
            stack = "decoder" if self.film.plan.shape.causal else "encoder"
            calls = (AttentionCall(f"{stack}.{i}.self", source) for i, source in enumerate(sources))
            name, read = words("tokens"), self.film.read
            self._groups[key] = MapGroup(
                GROUP, label, name, name, read, read, tuple(calls), rows_sum_to_one=not in_lengths
            )
        return self._groups[key]

    @property
    def opens_with(self) -> ViewState:
        """The head with the most induction at the end, or with the most weight on the token before.

        A run that goes on keeps its head: the open one must not change under the reader's eyes.
        """
        if self._opened is not None:
            return self._opened
        measured = self.measures.get("induction", self.measures["previous"])
        return ViewState(GROUP, *strongest_head(measured))


@st.cache_resource(max_entries=24, show_spinner=False)
def recorded(name: str, seed: int) -> MeasuredRun:
    """A recorded run that ships.

    Raises:
        AssetError: if it is not there.
    """
    path = RECORDED / f"{name}-{seed}.npz"
    with reading(path):
        return MeasuredRun(load_film(path))
