"""Live training with the reader's settings, in slices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from pages.learning.measured_run import MeasuredRun
from pages.learning.run_display import show_runs
from ui.blocks.stopwatch import stopwatch
from ui.blocks.training import LiveTraining, training
from ui.chapter.chapter import Chapter
from ui.compute.slots import is_hosted
from viz_core.lessons.learning.own_run import plan_for
from viz_core.tasks import POSITIONS, TASKS, Plan, Shape, TaskRun
from viz_core.tasks.film import Film

ALONE = "alone"
NAME = "train"


@dataclass(eq=False, kw_only=True)
class OwnRun(LiveTraining[TaskRun]):
    """One or two live runs and their recordings.

    Attributes:
        tested: accuracy by length, by the step at which it was tested.
    """

    tested: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    _measured: dict[str, MeasuredRun] = field(default_factory=dict)

    def measured_runs(self) -> dict[str, MeasuredRun]:
        """The runs measured so far; a run without new updates is not measured again."""
        for name, run in self.runs.items():
            stored = self._measured.get(name)
            if stored is None or len(stored.film.loss) != run.step:
                self._measured[name] = MeasuredRun(Film.of(run), stored)
        return dict(self._measured)


def own_run(chapter: Chapter) -> MeasuredRun | None:
    """Draw the settings, the start button and the run so far."""
    plans = _plans(chapter)

    def begin() -> OwnRun:
        st.session_state.pop(chapter.controls.key("step"), None)
        runs = {name: TaskRun(plan) for name, plan in plans.items()}
        steps = max(plan.steps for plan in plans.values())
        return OwnRun(training(tuple(runs.values())), {}, steps, kind="learning", runs=runs)

    stopwatch(chapter, NAME, begin, lambda run: _draw(chapter, run), ":material/model_training:", resumable=True)
    run = stored_run(chapter)
    return None if run is None else next(iter(run.measured_runs().values()))


def stored_run(chapter: Chapter) -> OwnRun | None:
    """The reader's own run in this session, running or finished."""
    return st.session_state.get(chapter.controls.key(NAME))


def _draw(chapter: Chapter, run: OwnRun) -> None:
    """Name what was trained (the controls may have changed since) and draw the run so far."""
    plan = run.first.plan
    values = {
        "task": chapter.words(f"option.{plan.task}"),
        "positions": chapter.words(f"option.{plan.shape.positions}"),
    }
    sizes = {"layers": plan.shape.num_layers, "heads": plan.shape.num_heads, "width": plan.shape.num_hiddens}
    chapter.text("own-run", **values, **sizes, seconds=f"{run.measurements[-1]:.0f}" if run.measurements else "0")
    show_runs(chapter, run.measured_runs(), follow=run.state == "running")


def _plans(chapter: Chapter) -> dict[str, Plan]:
    """One plan, or two that differ in one thing, by their names."""
    controls, small = chapter.controls, is_hosted()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        task = controls.select("task", tuple(TASKS), "repeat")
        positions = controls.select("positions", tuple(POSITIONS), "rotary")
        layers = controls.choice("layers", (1, 2) if small else (1, 2, 3, 4), 2)
        differs = controls.select("differs", (ALONE, "layers", "positions", "seed"), ALONE)
        if differs == "layers":
            other: dict[str, Any] = {
                "num_layers": controls.choice("other-layers", (1, 2, 3, 4)[: 2 if small else 4], 1)
            }
        elif differs == "positions":
            other = {"positions": controls.select("other-positions", tuple(POSITIONS), "none")}
        elif differs == "seed":
            other = {"seed": int(controls.slider("other-train-seed", 0, 9, 1))}
        else:
            other = {}
    with controls.more():
        steps = int(controls.select_slider("steps", (100, 200, 400, 800, 1600, 3200), 400))
        longest = int(controls.slider("longest", 4, 20, 10))
        heads = controls.choice("heads", (1, 2, 4, 8), 4)
        width = controls.choice("width", (32, 64) if small else (32, 64, 128, 256), 64)
        norm = controls.choice("norm", ("before", "after"), "before")
        feed_forward = controls.toggle("feed-forward", True)
        causal = TASKS[task].in_order or controls.toggle("causal", True)
        seed = int(controls.slider("train-seed", 0, 9, 0))
    shape = Shape(layers, heads, width, positions, norm == "before", feed_forward, causal)
    plan = plan_for(task, shape, steps, longest, seed)
    chapter.text(f"task-{task}")
    if not other:
        return {chapter.words("yours"): plan}
    second = replace(plan, **other) if "seed" in other else replace(plan, shape=replace(shape, **other))
    named = {_name(chapter, plan, differs): plan}
    return named | {_name(chapter, second, differs): second}


def _name(chapter: Chapter, plan: Plan, differs: str) -> str:
    """The setting in which one of two runs differs."""
    if differs == "layers":
        return chapter.words("with-layers", layers=plan.shape.num_layers)
    if differs == "positions":
        return chapter.words(f"option.{plan.shape.positions}")
    return chapter.words("with-seed", seed=plan.seed)
