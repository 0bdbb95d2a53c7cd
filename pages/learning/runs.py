"""Recorded and live runs: heads measured at each snapshot, and their maps at a step of the reader's choice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float

from pages.learning import figures
from pages.learning.figures import largest_jump, strongest_head
from ui.blocks.stopwatch import LiveTraining, stopwatch, training
from ui.chapter.chapter import Chapter
from ui.compute.slots import is_hosted
from ui.text.words import Words
from ui.widgets.attention_view import attention_view
from viz_core.lessons.learning import HEAD_MEASURES, head_measures, plan_for, shares_at, shot_weights
from viz_core.maps.contributions import ContributionKind
from viz_core.runtime.assets import ASSETS, reading
from viz_core.tasks import POSITIONS, TASKS, Plan, Shape, TaskRun
from viz_core.tasks.film import FILMS, SEEDS, Film, load_film
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


ALONE = "alone"


def show_runs(chapter: Chapter, runs: Mapping[str, MeasuredRun], follow: bool = False) -> None:
    """Draw the maps of a step, then the charts.

    Args:
        runs: one or two, by their names.
        follow: whether they are being made: then the newest shot is shown, and there is no time line.
    """
    run, *_ = runs.values()
    step = run.film.shots[-1] if follow else _time_line(chapter, run.film)
    _say(chapter, runs, step)
    stage, under = st.container(), st.container()
    with under:
        contribution_kind = chapter.contributions_choice()

    with stage:
        maps = [run.group(run.shot(step), chapter.words, contribution_kind)]
        chapter.attention_view(maps, run.opens_with, contribution_kind=contribution_kind)
    for other, second in [*runs.items()][1:]:
        st.markdown(f"**{other}**")
        maps = [second.group(second.shot(step), chapter.words, contribution_kind)]
        own: dict[str, Any] = {"head_param": "head2", "pin_param": "pin2", "display_param": "look2"}
        attention_view(maps, second.opens_with, key="maps2", contribution_kind=contribution_kind, folded=True, **own)
    if not follow:
        chapter.flush()
    _charts(chapter, runs, run.film.shots[run.shot(step)])


def _time_line(chapter: Chapter, film: Film) -> int:
    """The chosen step; the last one by default."""
    last = film.shots[-1]
    if len(film.shots) < 2:
        return last
    return int(chapter.controls.slider("step", 0, last, last, film.shots[1] - film.shots[0]))


def _say(chapter: Chapter, runs: Mapping[str, MeasuredRun], step: int) -> None:
    """The accuracy at this step, one line per run."""
    for name, run in runs.items():
        film, shot = run.film, run.shot(step)
        right = f"{film.held_out[shot]:.0%}"
        chapter.text("shot", run=name, step=f"{film.shots[shot]:,}", right=right, seed=film.plan.seed)


def _charts(chapter: Chapter, runs: Mapping[str, MeasuredRun], step: int) -> None:
    names = chapter.words.group("figure")
    run, *_ = runs.values()
    film = run.film
    jump = largest_jump(film.shots, film.held_out)
    offered = [each for each in HEAD_MEASURES if each in run.measures]
    measure = chapter.controls.choice("measure", offered, offered[0])
    curves, heads = st.columns(2, gap="medium")
    with curves:
        figure = figures.curve_figure({name: each.film for name, each in runs.items()}, step, jump, names)
        if jump is None:
            chapter.figure("first-curve", figure)
        else:
            values: dict[str, Any] = {"before": jump.before, "after": jump.after, "change": f"{100 * jump.change:+.0f}"}
            chapter.figure("curve", figure, right=f"{film.held_out[-1]:.0%}", last=film.shots[-1], **values)
    with heads:
        measured = run.measures[measure]
        layer, head = strongest_head(measured)
        head_jump = largest_jump(film.shots, measured[:, layer, head])
        head_values: dict[str, Any] = {
            "measure": chapter.words(f"option.{measure}"),
            "layer": layer + 1,
            "head": head + 1,
        }
        head_values |= {"last": f"{measured[-1, layer, head]:.2f}", "first": f"{measured[0, layer, head]:.2f}"}
        figure = figures.heads_figure(film.shots, measured, step, head_jump, head_values["measure"], names)
        chapter.figure("heads", figure, steps=film.shots[-1], **head_values)
    if head_jump is not None and jump is not None:
        spans = {"before": head_jump.before, "after": head_jump.after, "begin": jump.before, "end": jump.after}
        chapter.finding(
            "together", head_jump.before <= jump.after and jump.before <= head_jump.after, **head_values, **spans
        )


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
        else [(first, seed), (beside, other_seed)]
    )
    runs = {_recorded_name(chapter, run, seed, chosen): recorded(run, seed) for run, seed in chosen}
    chapter.fragment(lambda: show_runs(chapter, runs))
    chapter.text(f"task-{FILMS[first].task}")
    return next(iter(runs.values()))


def _recorded_name(chapter: Chapter, run: str, seed: int, chosen: list[tuple[str, int]]) -> str:
    """A run's name in legends, with its seed where both have one name."""
    name = chapter.words(f"option.{run}")
    alike = len({each for each, _ in chosen}) < len(chosen)
    return chapter.words("seeded", run=name, seed=seed) if alike else name


RUN_CONTROLS = ("source", "run", "beside", "seed", "other-seed", "step", "quantity", "measure", "task", "positions")
"""Controls of this section, as links name them."""


def runs(chapter: Chapter) -> None:
    """Draw the chosen run and its data."""
    source = chapter.controls.choice("source", ("recorded", "own"), "recorded")
    run = recorded_run(chapter) if source == "recorded" else own_run(chapter)
    if run is None:
        return
    film, measured = run.film, run.measures["previous"]
    arrays = {
        "previous": measured.reshape(len(film.shots), -1),
        "loss": film.loss,
        "accuracy": film.accuracy,
        "held_out": film.held_out,
        "maps": film.maps,
    }
    heads = [f"{layer + 1}.{head + 1}" for layer, head in np.ndindex(measured.shape[1:])]
    chapter.downloads(arrays, rows=[str(step) for step in film.shots], columns=heads)
