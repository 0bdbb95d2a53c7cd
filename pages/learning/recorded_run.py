"""The page's first view: a recorded run, alone or beside another."""

from __future__ import annotations

import streamlit as st

from pages.learning.measured_run import MeasuredRun, recorded
from pages.learning.run_display import show_runs
from ui.chapter.chapter import Chapter
from viz_core.tasks.film import FILMS, SEEDS

ALONE = "alone"


def recorded_run(chapter: Chapter) -> MeasuredRun:
    """Let the reader choose one or two runs, draw them, and return the first."""
    controls = chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        first = controls.select("run", tuple(FILMS), "repeat-two-layers")
        beside = controls.select("beside", (ALONE, *FILMS), ALONE)
        with controls.more():
            seed = controls.choice("seed", SEEDS, 0)
            other_seed = seed if beside == ALONE else controls.choice("other-seed", SEEDS, 0)
    chosen = (
        [(first, seed)]
        if beside == ALONE or (beside, other_seed) == (first, seed)
        else [
            (first, seed),
            (beside, other_seed),
        ]
    )
    runs = {_name(chapter, run, seed, chosen): recorded(run, seed) for run, seed in chosen}
    chapter.fragment(lambda: show_runs(chapter, runs))
    chapter.text(f"task-{FILMS[first].task}")
    return next(iter(runs.values()))


def _name(chapter: Chapter, run: str, seed: int, chosen: list[tuple[str, int]]) -> str:
    """A run's name in legends, with its seed where both have one name."""
    name = chapter.words(f"option.{run}")
    alike = len({each for each, _ in chosen}) < len(chosen)
    return chapter.words("seeded", run=name, seed=seed) if alike else name
