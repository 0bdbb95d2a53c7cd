"""What fits into a state: associative recall, trained here beside softmax attention."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from pages.linear_attention.figures import recall_figure
from ui.blocks.stopwatch import stopwatch
from ui.blocks.training import LiveTraining, training
from ui.chapter.chapter import Chapter
from ui.compute.slots import is_hosted
from viz_core.lessons.linear_attention.recall import (
    CHANCE,
    NUM_KEYS,
    NUM_VALUES,
    PAIRS,
    RECALL_RULES,
    WIDTHS,
    RecallPlan,
    RecallRun,
)

NAME = "train"
_STEPS = (100, 200, 400)


def recall(chapter: Chapter) -> None:
    """Draw the settings, the start button, and the accuracy by number of pairs and by size of the state."""
    controls = chapter.controls
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        writes = 2 if controls.choice("writes", ("once", "again"), "once") == "again" else 1
        width = int(controls.select_slider("size", WIDTHS, 16))
        pairs = int(controls.select_slider("pairs", PAIRS, 24))
        with controls.more():
            steps = int(controls.select_slider("steps", _STEPS[: 2 if is_hosted() else 3], 200))
            seed = int(controls.slider("train-seed", 0, 9, 0))
    chapter.text("recall", keys=NUM_KEYS, values=NUM_VALUES)

    def begin() -> LiveTraining[RecallRun]:
        run = RecallRun(RecallPlan(steps, writes, seed))
        return LiveTraining(training([run]), {}, steps, kind="learning", runs={NAME: run})

    draw = partial(_draw, chapter, width, pairs)
    stopwatch(chapter, NAME, begin, draw, ":material/model_training:", resumable=True)


def _draw(chapter: Chapter, width: int, pairs: int, live: LiveTraining[RecallRun]) -> None:
    """Name what was trained (the controls may have changed since) and draw its last test."""
    run, names = live.first, chapter.words.group("figure")
    if not run.tests:
        return
    step, found = next(reversed(run.tests.items()))
    written = chapter.words(f"option.{'once' if run.plan.writes == 1 else 'again'}")
    seconds = f"{live.measurements[-1]:.0f}" if live.measurements else "0"
    chapter.text("own-run", step=step, writes=written, seed=run.plan.seed, seconds=seconds)
    at_width, at_pairs = found[:, WIDTHS.index(width)], found[:, :, PAIRS.index(pairs)]
    ends: dict[str, Any] = {
        rule: f"{share:.0%}"
        for rule, share in zip(RECALL_RULES, found[:, WIDTHS.index(width), PAIRS.index(pairs)].tolist(), strict=True)
    }
    values = {"width": width, "pairs": pairs, "numbers": f"{width**2:,}", "chance": f"{CHANCE:.0%}", **ends}
    strength = float(run.layers["delta", width].strength.detach())
    left, right = st.columns(2, gap="medium")
    with left:
        curves = {names[rule]: curve for rule, curve in zip(RECALL_RULES, at_width.tolist(), strict=True)}
        chapter.figure("recall", recall_figure(curves, PAIRS, pairs, names, names["pairs"]), **values)
    with right:
        curves = {names[rule]: curve for rule, curve in zip(RECALL_RULES, at_pairs.tolist(), strict=True)}
        sizes = [size**2 for size in WIDTHS]
        figure = recall_figure(curves, sizes, width**2, names, names["numbers"], log=True)
        chapter.figure("recall-size", figure, strength=f"{strength:.2f}", **values)
