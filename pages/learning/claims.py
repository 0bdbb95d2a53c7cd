"""Claims about the recorded runs, measured on all three seeds, and about any encoder without positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import streamlit as st

from pages.learning.measured_run import MeasuredRun
from pages.learning.recorded_run import whole_set
from ui.chapter.chapter import Chapter
from viz_core.lessons.learning.own_run import blank_spread
from viz_core.lessons.learning.recorded_runs import memorised_at, waves_in_use

ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
SOLVED, UNSOLVED = 0.85, 0.4
LEAST_INDUCTION = 0.5
ABOVE_CHANCE = 0.45
FEW_WAVES = 15.0


def claims(chapter: Chapter) -> None:
    """Draw the checks on three seeds, each measured when it becomes visible."""
    broken = chapter.break_it("untrained", "given", "later", part="claims")
    with chapter.claim_row("measured"):
        shot = 0 if broken == "untrained" else -1
        right, induction, waves = (partial(measure, shot=shot) for measure in (_right, _most_induction, _waves))
        given = broken == "given"
        alone = "repeat-two-layers" if given else "repeat-one-layer"
        blind = "reverse-sinusoidal" if given else "reverse-none-encoder"
        memorised = right if broken == "later" else _while_memorised
        chapter.claim_at_least("two-layers", _worst("repeat-two-layers", right), SOLVED)
        chapter.claim_at_most("one-layer", _best(alone, right), UNSOLVED)
        chapter.claim_at_least("induction", _worst("repeat-two-layers", induction), LEAST_INDUCTION)
        chapter.claim("blanks", lambda: blank_spread("sinusoidal" if given else "none"), ROUNDING)
        chapter.claim_at_most("encoder-blind", _best(blind, right), UNSOLVED)
        chapter.claim_at_least("decoder-counts", _worst("reverse-none-decoder", right), ABOVE_CHANCE)
        chapter.claim_at_least("reversed", _worst("reverse-sinusoidal", right), SOLVED)
        chapter.claim_at_most("by-heart", _best("modular-addition", memorised), 0.6)
        chapter.claim_at_least("understood", _worst("modular-addition", right), 0.95)
        chapter.claim_at_most("sparse", _best("modular-addition", waves), FEW_WAVES)
    chapter.text("claims")
    if broken:
        st.warning(chapter.words(f"break.{broken}"), icon=":material/build_circle:")


def _worst(name: str, measure: Callable[[MeasuredRun], float]) -> Callable[[], float]:
    """The lowest of the three seeds."""
    return lambda: _of_all(name, measure, min)


def _best(name: str, measure: Callable[[MeasuredRun], float]) -> Callable[[], float]:
    """The highest of the three seeds."""
    return lambda: _of_all(name, measure, max)


def _of_all(name: str, measure: Callable[[MeasuredRun], float], which: Callable[[Iterable[float]], float]) -> float:
    """The values of all seeds; NaN, so that the claim fails, where a recorded run is missing."""
    try:
        return which([measure(run) for run in whole_set(name)])
    except ValueError:
        return math.nan


def _right(run: MeasuredRun, shot: int) -> float:
    return float(run.film.held_out[shot])


def _most_induction(run: MeasuredRun, shot: int) -> float:
    return float(run.measures["induction"][shot].max())


def _while_memorised(run: MeasuredRun) -> float:
    """The held-out accuracy at the step at which the training examples are memorised."""
    shot = memorised_at(run.film)
    return 1.0 if shot is None else float(run.film.held_out[shot])


def _waves(run: MeasuredRun, shot: int) -> float:
    return waves_in_use(run.film, shot)
