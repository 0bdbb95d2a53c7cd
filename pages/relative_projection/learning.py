"""The matrix learned from rows of the table, and how far the table must reach."""

from __future__ import annotations

import math

from pages.relative_projection.move import Move
from pages.relative_projection.residual_figures import fit_figure
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.lessons.relative_projection.fitted_projection import FitErrors, fit_errors
from viz_core.runtime.interruption import may_end

LEARNED = 1e-6  # an error up to which a fitted matrix counts as the one of the formula
_REACHES = (100, 1_000, 10_000, 100_000, 1_000_000)


def learning(chapter: Chapter, move: Move) -> None:
    """A matrix fitted to rows of the table, by how far the table reaches."""
    chapter.text("learn", offset=move.offset, samples=f"{max(256, 2 * move.num_hiddens):,}")
    reach = chapter.controls.select_slider("reach", _REACHES, 100_000)
    chapter.lazy("learned", lambda: _learned(chapter, move, reach), 560)


def _learned(chapter: Chapter, move: Move, reach: int) -> None:
    fits = _fits(move.offset, move.num_hiddens, move.base)
    fit = next(fit for fit in fits if fit.reach == reach)
    longest = 2 * math.pi / float(move.omega()[-1])
    chapter.text("rank", last=f"{reach - 1:,}", rank=fit.rank, width=move.num_hiddens)
    with chapter.claim_row("claims-learn"):
        chapter.claim("seen", fit.seen, 1e-9)
        chapter.claim("unseen", fit.unseen, LEARNED, reach=f"{reach:,}")
        chapter.claim("learned", fit.difference, LEARNED)
    chapter.figure(
        "fit",
        fit_figure(fits, longest, chapter.words.group("figure")),
        reach=f"{reach:,}",
        seen=f"{fit.seen:.2g}",
        unseen=f"{fit.unseen:.2g}",
        difference=f"{fit.difference:.2g}",
        longest=f"{longest:,.0f}",
    )


@cached(message="measuring")
def _fits(offset: int, num_hiddens: int, base: float) -> tuple[FitErrors, ...]:
    fits = []
    for reach in _REACHES:
        may_end()
        fits.append(fit_errors(offset, num_hiddens, reach, base))
    return tuple(fits)
