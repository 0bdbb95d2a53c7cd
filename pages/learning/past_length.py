"""Accuracy beyond the trained length: every scheme on three seeds, published orders, and the reader's own run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from pages.learning import figures
from pages.learning.measured_run import RECORDED
from pages.learning.own_run import OwnRun, stored_run
from pages.learning.reaches import PAPERS, PUBLISHED, Reach, published_order, read_reaches, turned_round
from ui.chapter.chapter import Chapter
from ui.compute.slots import run_in_slot
from viz_core.lessons.learning.own_run import right_by_length
from viz_core.runtime.assets import reading
from viz_core.tasks import POSITIONS

OWN_LENGTHS = (2, 4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60)


@st.cache_resource(max_entries=1, show_spinner=False)
def measured() -> dict[str, Any]:
    """What the recording command wrote."""
    with reading(path := RECORDED / "extrapolation.json"):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        read_reaches(content)
        return content


def past_length(chapter: Chapter) -> None:
    """Draw the figure, the table, and where the order differs from published ones."""
    recorded = measured()
    reaches = read_reaches(recorded)
    plan, lengths = recorded["plan"], recorded["lengths"]
    sizes = {"layers": plan["shape"]["num_layers"], "heads": plan["shape"]["num_heads"]}
    values = {"steps": f"{plan['steps']:,}", "longest": plan["longest"], "last": lengths[-1]}
    chapter.text("past", width=plan["shape"]["num_hiddens"], **sizes, **values)
    chapter.fragment(partial(_figure, chapter, reaches))
    _table(chapter, reaches)
    for paper, cited in PAPERS.items():
        pairs = turned_round(reaches, paper)
        names = _labels(chapter)
        exceptions = [chapter.words("ahead-of", ahead=names[ahead], behind=names[behind]) for ahead, behind in pairs]
        chapter.finding("agrees", not pairs, paper=cited, pairs=exceptions)


def _labels(chapter: Chapter) -> dict[str, str]:
    """Labels of the figures, with those of all position schemes."""
    return chapter.words.group("figure") | {name: chapter.words(f"option.{name}") for name in POSITIONS}


def _figure(chapter: Chapter, reaches: Mapping[str, Reach]) -> None:
    """The curves, and the reader's own once it is tested."""
    run, names = stored_run(chapter), _labels(chapter)
    yours = _own(chapter, run) if run is not None else []
    summary = {names[name]: f"{reach.past.mean():.0%}" for name, reach in reaches.items()}
    chapter.figure("reach", figures.reach_figure(reaches, yours, names), summary=summary)
    if run is None:
        chapter.text("no-own-run")


def _own(chapter: Chapter, run: OwnRun) -> list[tuple[int, float]]:
    """A button that tests the reader's run, and its results."""
    first = run.first
    if first.task.finite:
        chapter.text("no-lengths")
        return []
    step = first.step
    clicked = st.button(
        chapter.words("test-own"),
        key=chapter.controls.key("test-own"),
        icon=":material/straighten:",
        disabled=run.state == "running",
    )
    if clicked and run.state != "running" and step not in run.tested:
        run.tested = {step: run_in_slot(lambda: right_by_length(first, OWN_LENGTHS), "learning")}
    if step in run.tested:
        scheme = chapter.words(f"option.{first.plan.shape.positions}")
        task = chapter.words(f"option.{first.plan.task}")
        chapter.text("own-tested", step=f"{step:,}", task=task, scheme=scheme, longest=first.plan.longest)
    return run.tested.get(step, [])


def _table(chapter: Chapter, reaches: Mapping[str, Reach]) -> None:
    """Our order beside those of the papers."""
    orders = {paper: published_order(paper) for paper in PUBLISHED}
    rows = [chapter.words("orders.head")]
    for place, (name, reach) in enumerate(reaches.items(), start=1):
        ranks = {paper: str(order.index(name) + 1) if name in order else "–" for paper, order in orders.items()}
        rows.append(
            chapter.words(
                "orders.row",
                scheme=chapter.words(f"option.{name}"),
                place=place,
                within=f"{reach.within.mean():.0%}",
                past=f"{reach.past.mean():.0%}",
                low=f"{reach.past.min():.0%}",
                high=f"{reach.past.max():.0%}",
                **ranks,
            )
        )
    st.markdown("\n".join(rows))
    chapter.guidance("orders")
