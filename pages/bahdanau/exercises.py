"""Recorded experiments for the book's two exercises: another cell and another score."""

from __future__ import annotations

from functools import partial
from typing import Any

from pages.bahdanau.book_variants import Variant, variants
from pages.bahdanau.figures import curves_figure
from ui.chapter.chapter import Chapter

LEARNED = 1.0  # nats a token: what the epochs are counted to


def other_cell(chapter: Chapter) -> None:
    """LSTMs in place of GRUs."""
    _compare(chapter, "lstm")


def other_score(chapter: Chapter) -> None:
    """The scaled dot product in place of additive scores."""
    _compare(chapter, "dot-product")


def _compare(chapter: Chapter, other: str) -> None:
    """Both learning curves, and epochs, validation and parameters of either."""
    both = {name: variants()[name] for name in ("printed", other)}
    names = chapter.words.group("figure")
    curves = {chapter.words(f"variant.{name}"): each.curve() for name, each in both.items()}
    values: dict[str, Any] = {"loss": f"{LEARNED:g}", "count": len(both[other].curve())}
    for side, each in zip(("printed", "other"), both.values(), strict=True):
        values |= {f"{side}_{what}": value for what, value in _training_values(each).items()}
    chapter.figure(
        f"measured-{other}",
        partial(curves_figure, curves, names["epoch"], names["train-loss"], "train_loss"),
        **values,
    )


def _training_values(variant: Variant) -> dict[str, Any]:
    return {
        "epochs": variant.epochs_until(LEARNED),
        "validation": [f"{each:.2f}" for each in variant.best_validation()],
        "parameters": f"{variant.parameters:,}",
    }
