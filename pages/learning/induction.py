"""The main figure: every head of a model that learns to repeat, and when its two key heads appear."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from pages.learning import figures
from pages.learning.jumps import strongest_head
from pages.learning.measured_run import MeasuredRun, recorded
from ui.chapter.chapter import Chapter
from ui.widgets.chart import Point
from viz_core.lessons.learning.recorded_runs import shot_weights

SOLVED, LEAST_INDUCTION = 0.85, 0.5


def induction(chapter: Chapter) -> None:
    """Draw the heads at an update, the curves, and two checks; broken, beside it, with one layer or untrained."""
    shots = recorded("repeat-two-layers", 0).film.shots
    with chapter.main_controls():
        step = int(chapter.controls.slider("update", 0, shots[-1], shots[-1], shots[1]))
        broken = chapter.break_it("one-layer", "untrained")
    chapter.side_by_side(broken, partial(_draw, chapter, step, bool(broken)))
    chapter.guidance("main")


def _draw(chapter: Chapter, step: int, narrow: bool, setting: str) -> None:
    run = recorded("repeat-one-layer" if setting == "one-layer" else "repeat-two-layers", 0)
    film, names = run.film, chapter.words.group("figure")
    end = 0 if setting == "untrained" else len(film.shots) - 1
    shot = min(run.shot(step), end)
    maps, curves = (st.container(), st.container()) if narrow else st.columns([3, 2], gap="medium")
    with maps:
        at = f"{film.shots[shot]:,}"
        figure = figures.every_head_figure(shot_weights(film, shot), film.read)
        chapter.figure("every-head", figure, bar=False, step=at, layers=film.maps.shape[1], text=" ".join(film.read))
    with curves:
        heads = {name: strongest_head(run.measures[name]) for name in ("previous", "induction")}
        values: dict[str, Any] = {name: f"{run.measures[name][shot, *head]:.2f}" for name, head in heads.items()}
        figure = figures.together_figure(film, run.measures, heads, film.shots[shot], names)
        on_click = partial(_go_to, chapter) if setting != "untrained" else None
        right = f"{film.held_out[shot]:.0%}"
        chapter.figure("together", figure, bar=False, on_click=on_click, step=at, right=right, **values)
    with chapter.claim_row("main"):
        chapter.claim_at_least("learns", float(film.held_out[end]), SOLVED)
        chapter.claim_at_least("finds", _most_induction(run, end), LEAST_INDUCTION)


def _most_induction(run: MeasuredRun, shot: int) -> float:
    return float(run.measures["induction"][shot].max())


def _go_to(chapter: Chapter, point: Point) -> None:
    """Move the slider to the update that was clicked."""
    st.session_state[chapter.controls.key("update")] = round(float(point["x"]) / 10) * 10
