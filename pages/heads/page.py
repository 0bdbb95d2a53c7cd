"""Heads: every head of a model as a point, what each attends to beyond chance, and what it is worth."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.heads.live import Task, make_scan
from pages.heads.marks import why_nothing
from pages.heads.parts import card_of_head, narrow_and_broad, sources, table_section
from pages.heads.plot import Plot, choose_plot, main_figure, maps_of_example
from ui.chapter.chapter import Chapter
from viz_core.circuits import ov_circuit, qk_circuit
from viz_core.maps.register import beyond_chance, role_masses

chapter = Chapter("heads")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    plot, broken = choose_plot(chapter)
    if isinstance(plot, Plot):
        chapter.side_by_side(broken, partial(main_figure, chapter, plot, bool(broken)))
    waiting = st.container()

chapter.exercise("induction")
chapter.takeaways()
chapter.next()


def code() -> None:
    """Draw sources, source code and downloads."""
    sources(chapter)
    chapter.code(role_masses, beyond_chance, qk_circuit, ov_circuit)
    if isinstance(plot, Plot):
        chapter.downloads({"means": plot.table.part(plot.shown, "mean")})


sections: dict[str, Callable[[], None]] = {"marks": partial(why_nothing, chapter), "code": code}
if isinstance(plot, Plot):
    sections = {
        "maps": partial(maps_of_example, chapter, plot),
        "card": partial(card_of_head, chapter, plot),
        "sets": partial(narrow_and_broad, chapter, plot),
        "table": partial(table_section, chapter, plot),
        **sections,
    }
chapter.deeper(sections)
if isinstance(plot, Task):  # last, as the rest of the page need not wait for it
    with waiting:
        make_scan(chapter, plot)
