"""Experiments for the book's exercises on the Transformer, shown after the reader has answered."""

from __future__ import annotations

from statistics import fmean

from ui.chapter.book_exercises import recorded
from ui.chapter.chapter import Chapter
from viz_core.lessons.transformer.costs import TransformerSizes, additive_cost, depth_cost, dot_cost

TOKENS, WIDTH, HEADS = 512, 256, 8


def deeper(chapter: Chapter) -> None:
    """Show the counted cost of a deeper Transformer, and its gain where it was trained."""
    values: dict[str, object] = {}
    for depth, found in recorded().depths.items():
        parameters, multiplications = depth_cost(depth, TransformerSizes())
        values |= {
            f"parameters_{depth}": f"{parameters:,}",
            f"multiplications_{depth}": f"{multiplications:,}",
            f"seconds_{depth}": f"{found.seconds:.2f}",
            f"training_{depth}": f"{fmean(found.training):.2f}",
            **{f"held_{depth}_{seed}": f"{loss:.2f}" for seed, loss in enumerate(found.held_out)},
        }
    chapter.text("measured.deeper", **values)


def additive(chapter: Chapter) -> None:
    """Show the cost of one layer's scores by both functions on a long text."""
    dot, other = (cost(TOKENS, WIDTH, HEADS) for cost in (dot_cost, additive_cost))
    chapter.text(
        "measured.additive",
        dot_multiplications=f"{dot.multiplications:,}",
        additive_multiplications=f"{other.multiplications:,}",
        dot_largest=f"{dot.largest:,}",
        additive_largest=f"{other.largest:,}",
        parameters=f"{other.parameters:,}",
        layer=f"{4 * WIDTH**2:,}",
    )
