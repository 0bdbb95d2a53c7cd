"""Experiments for the book's exercises, shown after the reader has answered."""

from __future__ import annotations

from pages.attention_pooling.pooling import CURVE_QUERIES, Pooling
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.attention.kernel_pooling import gaussian, nadaraya_watson
from viz_core.lessons.attention_pooling.consistency import Rate, errors_by_rate
from viz_core.lessons.attention_pooling.curve_fit import mean_squared_distance, noisy_points
from viz_core.lessons.attention_pooling.in_the_plane import agreement, labelled_points
from viz_core.lessons.attention_pooling.kernel_width import Descent, descend_width
from viz_core.lessons.attention_pooling.pooling_as_attention import sphere_errors

_WIDTH = 0.5  # of the windows in the plane
_POWERS = {"fast": 1.0, "right": 0.2, "never": 0.0}
_FIRST, _LAST = 20, 2000  # points


def sphere(chapter: Chapter) -> None:
    """Compare a Gaussian's weights with a softmax of products and with uniform ones, on random keys of length 1."""
    product, even = sphere_errors()
    chapter.text("measured.sphere", product=f"{product:.1e}", even=f"{even:.3f}")


def descent(chapter: Chapter, pooling: Pooling) -> None:
    """Show both learned widths on the reader's points, and the distance of each fit from the truth."""
    x, y = pooling.points()
    values: dict[str, object] = {"n": pooling.n}
    for name, found in _descents(pooling.n, pooling.noise, pooling.seed).items():
        fit = nadaraya_watson(x, y, CURVE_QUERIES, gaussian(found.width))[0]
        values[f"{name}_width"] = f"{found.width:.3g}"
        values[f"{name}_error"] = f"{found.error:.3f}"
        values[f"{name}_truth"] = f"{mean_squared_distance(fit, CURVE_QUERIES):.3f}"
    chapter.text("measured.descent", **values)


def shrink(chapter: Chapter, noise: float) -> None:
    """Compare three rates at which the width shrinks."""
    values: dict[str, object] = {"first": _FIRST, "last": f"{_LAST:,}", "noise": f"{noise:g}"}
    for name, rate in zip(_POWERS, _rates(noise).values(), strict=True):
        values |= {f"{name}_width": f"{rate.width:.3g}", f"{name}_error": f"{rate.error:.4f}"}
        values[f"{name}_within"] = f"{rate.within:.0f}"
    chapter.text("measured.shrink", **values)


def parzen(chapter: Chapter) -> None:
    """Compare both classifiers on a grid over the labelled points."""
    points, labels = labelled_points()
    found = agreement(points, labels, _WIDTH)
    first = int((labels == 0).sum())
    chapter.text(
        "measured.parzen",
        places=f"{found.places:,}",
        unlike=found.unlike,
        off=f"{found.off:.1e}",
        plus=first,
        minus=len(labels) - first,
        by_count=found.unlike_by_count,
    )


@cached(message="measuring")
def _descents(n: int, noise: float, seed: int) -> dict[str, Descent]:
    points = noisy_points(n, noise, seed)
    return {"kept": descend_width(*points, left_out=False), "left": descend_width(*points, left_out=True)}


@cached(message="measuring")
def _rates(noise: float) -> dict[float, Rate]:
    return errors_by_rate(tuple(_POWERS.values()), _FIRST, _LAST, noise)
