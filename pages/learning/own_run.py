"""Training here and now: what the reader asks for, in slices, watched as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from pages.learning.measured_run import MeasuredRun
from pages.learning.run_display import show_runs
from ui.blocks.stopwatch import StepwiseRun, stopwatch
from ui.chapter.chapter import Chapter
from ui.compute.slots import is_hosted, time_limit
from viz_core.lessons.learning.own_run import Training, plan_for
from viz_core.tasks import POSITIONS, TASKS, Plan, Shape, TaskRun
from viz_core.tasks.film import Film

ALONE = "alone"
NAME = "train"


@dataclass(eq=False, kw_only=True)
class OwnRun(StepwiseRun[float]):
    """One run or two under way, and what was filmed of them.

    Attributes:
        runs: by the names they have in legends.
        tested: accuracy by length, by the step at which it was asked for.
    """

    runs: dict[str, TaskRun]
    tested: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    _measured: dict[str, MeasuredRun] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Updates of the one that has most to go."""
        return min(run.step for run in self.runs.values())

    @property
    def first(self) -> TaskRun:
        """The one that was asked for; the other stands beside it."""
        return next(iter(self.runs.values()))

    def measured_runs(self) -> dict[str, MeasuredRun]:
        """What there is to see; the same maps as before where no more were taken."""
        for name, run in self.runs.items():
            stored = self._measured.get(name)
            if stored is None or len(stored.film.loss) != run.step:
                self._measured[name] = MeasuredRun(Film.of(run), stored)
        return dict(self._measured)

    def _end(self, state: str) -> None:
        super()._end("spent" if state == "finished" and self.done < self.total else state)


def own_run(chapter: Chapter) -> MeasuredRun | None:
    """Settings, a button, and the run: what there is of it."""
    plans = _plans(chapter)

    def begin() -> OwnRun:
        st.session_state.pop(chapter.controls.key("step"), None)
        runs = {name: TaskRun(plan, store_weights=False) for name, plan in plans.items()}
        most = time_limit() if is_hosted() else None
        steps = max(plan.steps for plan in plans.values())
        return OwnRun(Training(tuple(runs.values()), most), {}, steps, kind="learning", runs=runs)

    stopwatch(chapter, NAME, begin, lambda run: _draw(chapter, run), ":material/model_training:", resumable=True)
    run = stored_run(chapter)
    return None if run is None else next(iter(run.measured_runs().values()))


def stored_run(chapter: Chapter) -> OwnRun | None:
    """The reader's own run of this session, whether it goes or is over."""
    return st.session_state.get(chapter.controls.key(NAME))


def _draw(chapter: Chapter, run: OwnRun) -> None:
    """What was trained, for the controls may have moved since, and what there is of it."""
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
    """What is its own of one of two."""
    if differs == "layers":
        return chapter.words("with-layers", layers=plan.shape.num_layers)
    if differs == "positions":
        return chapter.words(f"option.{plan.shape.positions}")
    return chapter.words("with-seed", seed=plan.seed)
