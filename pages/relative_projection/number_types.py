"""How each number type degrades with position."""

from __future__ import annotations

from typing import Any

from pages.relative_projection.move import TYPES, Move
from pages.relative_projection.residual_figures import precision_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.relative_projection.precision import precision_curves
from viz_core.lessons.relative_projection.proof import rounding_bound

_FAR = 100_000  # how far the number types are followed


def number_types(chapter: Chapter, move: Move) -> None:
    """How each number type degrades with position."""
    chapter.text("types")
    chapter.lazy("types", lambda: _degrading(chapter, move), 520)


def _degrading(chapter: Chapter, move: Move) -> None:
    curves = {}
    excess = []
    for name, dtype in TYPES.items():
        positions, rounded, naive = precision_curves(move.offset, move.num_hiddens, dtype, move.base, _FAR)
        curves[name] = (positions.numpy(), rounded.numpy(), naive.numpy())
        excess.append(float(rounded.max()) / rounding_bound(_FAR + abs(move.offset), dtype))
    ends: dict[str, Any] = {name: f"{curve[2][-1]:.2g}" for name, curve in curves.items()}
    chapter.figure(
        "types",
        precision_figure(curves, chapter.words.group("figure")),
        limit=f"{_FAR:,}",
        worst=f"{curves['bfloat16'][2].max():.2g}",
        **ends,
    )
    with chapter.claim_row("claims-types"):
        chapter.claim_at_most("rounded", max(excess), 1.0, limit=f"{_FAR:,}")
