"""The main figure: the table, intact or broken, with the claims about it."""

from __future__ import annotations

from pages.sinusoidal_encoding.figures import Table, error_heatmap, plain_heatmap, table_heatmap
from pages.sinusoidal_encoding.properties import claims
from ui.chapter.chapter import Chapter
from viz_core.lessons.sinusoidal_encoding.broken import lone_sine, single_precision, without_cosines
from viz_core.lessons.sinusoidal_encoding.properties import wavelengths

_BROKEN = {"no-cosine": without_cosines, "odd": lone_sine, "single": single_precision}


def main_figure(chapter: Chapter, table: Table, base: float, broken: str) -> None:
    """Draw the table as a heatmap and its claims."""
    names = chapter.words.group("figure")
    n, d = table.shape
    if broken:
        wrong = _BROKEN[broken](n, d, base)
        if broken == "single":  # no colour shows errors of a millionth: draw the errors
            errors = wrong - table
            largest = f"{float(errors.abs().max()):.1e}"
            chapter.heatmap("errors", error_heatmap(errors, names), n=n, d=d, largest=largest)
        else:
            chapter.heatmap("broken-table", plain_heatmap(wrong, names), n=n, d=wrong.shape[1])
        claims(chapter, wrong, base, broken)
        return
    lengths = wavelengths(d, base)
    chapter.heatmap("table", table_heatmap(table, base, names), n=n, d=d, longest=f"{lengths[-1]:,.0f}")
    claims(chapter, table, base, broken)
