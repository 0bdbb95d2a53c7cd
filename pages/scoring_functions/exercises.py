"""Measurements for the book's exercises, shown once a reader has answered."""

from __future__ import annotations

from ui.chapter.chapter import Chapter
from viz_core.lessons.scoring_functions.exercises import contributing_components, count_costs, distance_errors

_TOKENS, _WIDTH = 32, 16


def norms(chapter: Chapter) -> None:
    """How far three scores are from a distance."""
    chapter.text("measured.norms", **{name: f"{error:.1e}" for name, error in distance_errors().items()})


def matrix(chapter: Chapter) -> None:
    """How many of a key's components each way uses."""
    counts = {way: contributing_components(way) for way in ("between", "padded", "one")}
    chapter.text("measured.matrix", **{way: "—" if count is None else count for way, count in counts.items()})


def cost(chapter: Chapter) -> None:
    """Costs of attention, then with twice as many tokens, then with twice the width."""
    sizes = {"first": (_TOKENS, _WIDTH), "longer": (2 * _TOKENS, _WIDTH), "wider": (_TOKENS, 2 * _WIDTH)}
    values = {
        f"{name}_{what}": f"{number:,}"
        for name, (n, d) in sizes.items()
        for what, number in count_costs(n, n, d, d)._asdict().items()
    }
    chapter.text("measured.cost", tokens=_TOKENS, width=_WIDTH, double=2 * _TOKENS, twice=2 * _WIDTH, **values)
