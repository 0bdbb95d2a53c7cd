"""Experiments for the book's exercises on vision, shown after the reader has answered."""

from __future__ import annotations

from ui.chapter.book_exercises import recorded
from ui.chapter.chapter import Chapter
from viz_core.lessons.vision_transformer.patches import picture_cost

SIDES = (48, 96, 192, 384, 768)


def side(chapter: Chapter) -> None:
    """The book's model on larger and larger pictures, counted; and a small one of ours, timed."""
    values: dict[str, object] = {}
    before = 0
    for pixels in SIDES:
        cost = picture_cost(pixels)
        values |= {
            f"tokens_{pixels}": f"{cost.tokens:,}",
            f"multiplications_{pixels}": f"{cost.multiplications:,}",
            f"times_{pixels}": f"{cost.multiplications / before:.1f} ×" if before else "",
            f"share_{pixels}": f"{cost.maps / cost.multiplications:.0%}",
        }
        before = cost.multiplications
    timed = {f"seconds_{pixels}": f"{1000 * seconds:.0f} ms" for pixels, seconds in recorded().seconds.items()}
    chapter.text("measured.side", **values, **timed)


def average(chapter: Chapter) -> None:
    """The same small model trained with each readout."""
    found = recorded()
    gains = {f"gain_{seed}": f"{100 * gain:+.1f}" for seed, gain in enumerate(found.gains("average"))}
    chapter.text("measured.average", **_each("as-it-is", "average"), **gains)


def settings(chapter: Chapter) -> None:
    """The small model with one setting changed at a time."""
    changes = ("as-it-is", "larger-patches", "smaller-patches", "deeper", "plain-descent")
    chapter.text("measured.settings", **_each(*changes))


def _each(*changes: str) -> dict[str, str]:
    """The held-out accuracy of each seed, by change and seed."""
    right = recorded().right
    return {
        f"{change.replace('-', '_')}_{seed}": f"{share:.1%}"
        for change in changes
        for seed, share in enumerate(right[change])
    }
