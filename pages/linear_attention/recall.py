"""What fits into a state: associative recall by number of pairs."""

from __future__ import annotations

from typing import Any

from pages.linear_attention.figures import recall_figure
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.lessons.linear_attention.recall import PAIRS, recall_accuracy

_WIDTHS = (8, 16, 32, 64)
_recall = cached()(recall_accuracy)


def recall(chapter: Chapter) -> None:
    """Draw accuracy by number of pairs for softmax attention, the delta rule and a sum."""
    controls = chapter.controls
    width = int(controls.select_slider("size", _WIDTHS, 16))
    writes = 2 if controls.choice("writes", ("once", "again"), "once") == "again" else 1
    chapter.text("recall", numbers=width * width)
    found, names = _recall(width, writes), chapter.words.group("figure")
    curves = {names[name]: accuracy for name, accuracy in found._asdict().items()}
    ends: dict[str, Any] = {name: f"{accuracy[-1]:.0%}" for name, accuracy in found._asdict().items()}
    chapter.figure("recall", recall_figure(curves, PAIRS, names), most=PAIRS[-1], **ends)
    chapter.finding("fits", found.delta[-1] >= found.softmax[-1] - 0.01, most=PAIRS[-1], width=width, **ends)
