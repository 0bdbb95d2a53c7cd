"""One or two runs: a time line, every head at a step, curves, and measures of heads over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.learning import figures
from pages.learning.jumps import largest_jump, strongest_head
from pages.learning.measured_run import MeasuredRun
from ui.chapter.chapter import Chapter
from ui.widgets.attention_view import attention_view
from viz_core.lessons.learning.recorded_runs import HEAD_MEASURES
from viz_core.tasks.film import Film


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
        attention_view(maps, second.opens_with, key="maps2", contribution_kind=contribution_kind, **own)
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
            values: dict[str, Any] = {
                "before": jump.before,
                "after": jump.after,
                "change": f"{100 * jump.change:+.0f}",
            }
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
