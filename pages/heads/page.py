"""Heads: every head of a model as a point, what each attends to beyond chance, and what it is worth."""

from functools import partial

from pages.heads.card_of_head import card_of_head
from pages.heads.plot import choose_plot, main_figure, maps_of_example
from pages.heads.sources import sources
from pages.heads.tables import narrow_and_broad, table_section
from ui.chapter.chapter import Chapter
from viz_core.circuits import ov_circuit, qk_circuit
from viz_core.maps.roles import beyond_chance, role_masses

chapter = Chapter("heads")
chapter.question()
chapter.definition()
with chapter.card("main"):
    with chapter.main_controls():
        plot, broken = choose_plot(chapter)
    chapter.side_by_side(broken, partial(main_figure, chapter, plot, bool(broken)))

chapter.exercise("induction")
chapter.takeaways()
chapter.next()


def code() -> None:
    """Draw sources, source code and downloads."""
    sources(chapter)
    chapter.code(role_masses, beyond_chance, qk_circuit, ov_circuit)
    chapter.downloads({"means": plot.table.part(plot.shown, "mean")})


chapter.deeper(
    {
        "maps": lambda: maps_of_example(chapter, plot),
        "card": lambda: card_of_head(chapter, plot),
        "sets": lambda: narrow_and_broad(chapter, plot),
        "table": lambda: table_section(chapter, plot),
        "code": code,
    }
)
