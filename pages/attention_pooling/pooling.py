"""Inputs of the chapter: points, a kernel, a width and a query."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ui.chapter.chapter import Chapter
from viz_core.attention.kernel_pooling import KERNELS, Kernel, nadaraya_watson, with_width
from viz_core.lessons.attention_pooling.curve_fit import SPAN, Fit, book_curve, even_queries, noisy_points

LARGEST_WIDTH = 3.0
STEP = 0.01
CURVE_QUERIES = even_queries(251)  # of a curve
MAP_QUERIES = even_queries(51)  # of a map, as in the book


@dataclass(frozen=True)
class Pooling:
    """What the reader chose."""

    kernel: str
    width: float
    query: float
    n: int
    noise: float
    seed: int

    def points(self) -> tuple[Tensor, Tensor]:
        return noisy_points(self.n, self.noise, self.seed)

    def stretched(self) -> Kernel:
        return with_width(KERNELS[self.kernel], self.width)

    def at_query(self) -> Fit:
        """The fit at the reader's query alone."""
        return self.fit(torch.tensor([self.query], dtype=torch.float64))

    def fit(self, queries: Tensor, name: str = "") -> Fit:
        x, y = self.points()
        y_hat, weights = nadaraya_watson(x, y, queries, self.stretched())
        return Fit(name, x, y, queries, book_curve(queries), y_hat, weights)


def choose_pooling(chapter: Chapter) -> Pooling | None:
    """Read the width, a query, the kernel and the data; None, with a warning, for a width of zero."""
    controls = chapter.controls
    width = controls.slider("width", 0.0, LARGEST_WIDTH, 0.5, STEP)
    query = controls.slider("query", 0.0, SPAN, 2.5, 0.05)
    with controls.more():
        kernel = controls.choice("kernel", tuple(KERNELS), "gaussian")
        n = int(controls.slider("n", 2, 200, 40))
        noise = controls.slider("noise", 0.0, 3.0, 1.0, 0.1)
        seed = int(controls.number("seed", 0, 9999, 3))
    if width == 0:
        return None
    return Pooling(kernel, float(width), float(query), n, float(noise), seed)


def kernel_name(chapter: Chapter, kernel: str) -> str:
    return chapter.words(f"option.{kernel}")


def labels(chapter: Chapter) -> dict[str, str]:
    return chapter.words.group("figure") | {name: kernel_name(chapter, name) for name in KERNELS}
