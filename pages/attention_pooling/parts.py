"""Parts of the page: kernels, learned widths, and points in the plane."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
import torch
from PIL import Image
from torch import Tensor

from pages.attention_pooling.figures import kernels_figure, panels_figure, shares_figure, width_figure
from ui.blocks.over_picture import weights_image
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.attention.kernel_pooling import (
    KERNELS,
    Kernel,
    epanechnikov,
    gaussian,
    nadaraya_watson,
    triangular,
    with_width,
)
from viz_core.lessons.attention_pooling import (
    SPAN,
    Fit,
    book_curve,
    even_queries,
    labelled_points,
    left_out_right,
    noisy_points,
    search_width,
    share_map,
    transformed_error,
    true_best_width,
)

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


BOOK_WIDTHS = (0.1, 0.2, 0.5, 1.0)


def kernels(chapter: Chapter, pooling: Pooling) -> None:
    """Draw every kernel at the reader's width."""
    chapter.figure(
        "kernels",
        partial(kernels_figure, pooling.kernel, pooling.width, labels(chapter)),
        width=f"{pooling.width:g}",
        chosen=kernel_name(chapter, pooling.kernel),
    )
    half = torch.tensor(0.5)
    chapter.source_card("kernel", float(triangular(half)), own=f"{float(epanechnikov(half)):.4f}")


def widths(chapter: Chapter, pooling: Pooling) -> None:
    """The book's four widths side by side."""
    if pooling.kernel == "constant":
        st.caption(chapter.words("constant"))
    titled = {
        chapter.words("figure.width-title", width=f"{width:g}"): replace(pooling, width=width) for width in BOOK_WIDTHS
    }
    fits = [each.fit(CURVE_QUERIES, name) for name, each in titled.items()]
    chapter.figure(
        "widths",
        lambda: panels_figure(fits, _maps(titled), labels(chapter)),
        kernel=kernel_name(chapter, pooling.kernel),
        errors=_errors(chapter, fits),
    )


def every_kernel(chapter: Chapter, pooling: Pooling) -> None:
    """All kernels at the reader's width side by side."""
    titled = {kernel_name(chapter, name): _with(pooling, name) for name in KERNELS}
    fits = {name: each.fit(CURVE_QUERIES, name) for name, each in titled.items()}
    chapter.figure(
        "every-kernel",
        lambda: panels_figure(list(fits.values()), _maps(titled), labels(chapter)),
        width=f"{pooling.width:g}",
        errors=_errors(chapter, list(fits.values())),
        mean=f"{float(fits[kernel_name(chapter, 'constant')].y_train.mean()):.3f}",
    )


def _with(pooling: Pooling, kernel: str) -> Pooling:
    return replace(pooling, kernel=kernel)


def _maps(titled: dict[str, Pooling]) -> list[Fit]:
    return [each.fit(MAP_QUERIES, name) for name, each in titled.items()]


def _errors(chapter: Chapter, fits: Sequence[Fit]) -> dict[str, str]:
    none = chapter.words("no-answer")
    return {fit.name: none if math.isnan(fit.error) else f"{fit.error:.3f}" for fit in fits}


_search = cached(message="measuring")(search_width)


def learning(chapter: Chapter, pooling: Pooling) -> None:
    """Draw the leave-one-out error by width, with a button that sets the best width."""
    if pooling.kernel == "constant":
        chapter.text("learn.constant")
        return
    search, true_errors = _search(pooling.kernel, pooling.n, pooling.noise, pooling.seed)
    chapter.text("learn", n=pooling.n)
    unreached = int(search.errors.isnan().sum())
    chapter.figure(
        "learn",
        lambda: width_figure(search, true_errors, pooling.width, labels(chapter)),
        best=f"{search.best:.3f}",
        error=f"{search.error:.4f}",
        kernel=kernel_name(chapter, pooling.kernel),
        true=f"{true_best_width(search, true_errors):.3f}",
    )
    if unreached:
        first = float(search.widths[~search.errors.isnan()][0])
        st.caption(f":material/info: {chapter.words('learn.unreached', first=f'{first:.2f}')}")
    rounded = min(LARGEST_WIDTH, max(STEP, round(search.best / STEP) * STEP))
    if st.button(
        chapter.words("learn.take", width=f"{rounded:.2f}"),
        key=chapter.controls.key("take"),
        on_click=_take,
        args=(chapter.controls.key("width"), round(rounded, 2)),
        icon=":material/straighten:",
    ):
        st.rerun()  # the main figure too


def _take(key: str, width: float) -> None:
    st.session_state[key] = width


_SHIFT = (3.0, -1.0)
_SIDE = 61  # queries along each axis
_REACH = 3.0


def in_the_plane(chapter: Chapter) -> None:
    """Draw a map of labels from labelled points, without training, with the reader's two widths."""
    controls = chapter.controls
    chapter.text("plane")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        across = controls.slider("width-x", 0.1, 2.0, 0.5, 0.1)
        up = controls.slider("width-y", 0.1, 2.0, 0.5, 0.1)
        degrees = int(controls.slider("turn", 0, 90, 30, 5))
    points, given = labelled_points()
    axis, found = share_map(points, given, (across, up), _REACH, _SIDE)
    right = left_out_right(points, given, (across, up))
    widths: dict[str, Any] = {"across": f"{across:g}", "up": f"{up:g}"}
    chapter.figure(
        "plane",
        partial(shares_figure, axis.numpy(), found.numpy(), points.numpy(), given.numpy(), labels(chapter)),
        height=420,
        count=len(points),
        right=round(right * len(points)),
        share=f"{right:.0%}",
        **widths,
    )
    with chapter.claim_row("claims-plane"):
        chapter.claim("shares", float((found.sum(dim=-1) - 1).abs().max()), 1e-12)
        chapter.claim("shifted", transformed_error(points, (across, up), 0, _SHIFT), 1e-9)
        chapter.claim("turned", transformed_error(points, (across, up), degrees, (0, 0)), 1e-9, degrees=degrees)
    if across != up and degrees:
        chapter.text("plane.turned", **widths)


# The points the page opens with, under a Gaussian twice as wide.
_WIDE = Pooling("gaussian", 1.0, 2.5, 40, 1.0, 3)
_PLACES = even_queries(21)
THE_FIT = OnFigure(
    Board("curve", tuple(_PLACES.tolist()), -1.0, 5.5),
    "fit",
    {name: getattr(_WIDE, name) for name in ("kernel", "width", "n", "noise", "seed")} | {"break": "nothing"},
)


def draw_the_fit(chapter: Chapter) -> None:
    """Let the reader draw the fit of a wide kernel through the page's first points."""
    chapter.draw_on_figure("wide", THE_FIT, wide_fit)


def wide_fit() -> Truth:
    """The correct fit, and two mistakes: the curve behind the points, and a constant."""
    fit = _WIDE.fit(_PLACES)
    mistakes = {"truth": fit.truth.numpy(), "flat": fit.y_train.mean().expand(len(_PLACES)).numpy()}
    return Truth(fit.y_hat.numpy(), mistakes)


def gallery_picture() -> Image.Image:
    """The weights of 40 queries on 40 points, in order."""
    x, y = noisy_points(40)
    queries = torch.linspace(0, SPAN, 40, dtype=torch.float64)
    _, weights = nadaraya_watson(x, y, queries, gaussian(0.5))
    return weights_image((weights / weights.max()).float().numpy(), root=False)
