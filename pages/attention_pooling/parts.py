"""The attention-pooling chapter's parts: points, a kernel, a width, and what they make together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st
import torch
from torch import Tensor

from pages.attention_pooling import figures
from pages.attention_pooling.figures import Fit
from ui.chapter import Chapter
from ui.compute import computed
from viz_core.attention.kernel_pooling import nadaraya_watson
from viz_core.attention.kernels import KERNELS, Kernel, with_width
from viz_core.lessons.attention_pooling.kernel_width import WidthSearch, learn_width, shortcut_error
from viz_core.lessons.attention_pooling.noisy_points import SPAN, book_curve, mean_squared_distance, noisy_points
from viz_core.lessons.attention_pooling.pooling_as_attention import gaussian_pooling_as_attention

BOOK_WIDTHS = (0.1, 0.2, 0.5, 1.0)
LARGEST_WIDTH = 3.0
_STEP = 0.01
_QUERIES = torch.linspace(0, SPAN, 251, dtype=torch.float64)  # of a curve
_MAP_QUERIES = torch.linspace(0, SPAN, 51, dtype=torch.float64)  # of a map, as in the book
_TRIED = torch.logspace(-1.7, 1, 55, dtype=torch.float64)  # widths from 0.02 to 10


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

    def fit(self, queries: Tensor, name: str = "") -> Fit:
        x, y = self.points()
        y_hat, weights = nadaraya_watson(x, y, queries, self.stretched())
        return Fit(name, x, y, queries, book_curve(queries), y_hat, weights)


def ask_kernel(chapter: Chapter) -> str:
    return chapter.controls.choice("kernel", tuple(KERNELS), "gaussian")


def ask(chapter: Chapter, kernel: str) -> Pooling | None:
    """The width, a query and the data; None for a width of zero, with a sentence."""
    controls = chapter.controls
    width = controls.slider("width", 0.0, LARGEST_WIDTH, 0.5, _STEP)
    query = controls.slider("query", 0.0, SPAN, 2.5, 0.05)
    with controls.more():
        n = int(controls.slider("n", 2, 200, 40))
        noise = controls.slider("noise", 0.0, 3.0, 1.0, 0.1)
        seed = int(controls.number("seed", 0, 9999, 3))
    if width == 0:
        st.warning(chapter.words("zero-width"), icon=":material/straighten:")
        return None
    return Pooling(kernel, float(width), float(query), n, float(noise), seed)


def readout(chapter: Chapter, pooling: Pooling) -> None:
    """The reader's query in numbers."""
    if pooling.kernel == "constant":
        st.caption(chapter.words("constant"))
    fit = pooling.fit(torch.tensor([pooling.query], dtype=torch.float64))
    weights, answer = fit.weights[0], float(fit.y_hat)
    values = {"query": f"{pooling.query:.2f}", "truth": f"{float(fit.truth):.4f}", "n": pooling.n}
    if np.isnan(answer):
        chapter.text("readout.none", **values)
        return
    heaviest = int(weights.argmax())
    chapter.text(
        "readout",
        answer=f"{answer:.4f}",
        reached=int((weights > 0).sum()),
        largest=f"{float(weights[heaviest]):.4f}",
        key=f"{float(fit.x_train[heaviest]):.3f}",
        **values,
    )


def picture(chapter: Chapter, pooling: Pooling) -> tuple[go.Figure, Fit]:
    """The fit beside the truth, and the weights of the query on every key."""
    fit = pooling.fit(_QUERIES)
    at_query = pooling.fit(torch.tensor([pooling.query], dtype=torch.float64))
    answer = float(at_query.y_hat)
    figure = figures.fit_figure(fit, pooling.query, answer, at_query.weights[0], _labels(chapter))
    chapter.figure(
        "fit",
        figure,
        n=pooling.n,
        kernel=_kernel_name(chapter, pooling.kernel),
        width=f"{pooling.width:g}",
        query=f"{pooling.query:.2f}",
        answer=chapter.words("no-answer") if np.isnan(answer) else f"{answer:.3f}",
        error=f"{float((fit.y_hat - fit.truth).square().nanmean()):.3f}",
    )
    gaps = fit.x_val[fit.y_hat.isnan()]
    if len(gaps):
        share = f"{len(gaps) / len(fit.x_val):.0%}"
        words = chapter.words("gaps", low=f"{float(gaps[0]):.2f}", high=f"{float(gaps[-1]):.2f}", share=share)
        st.caption(f":material/info: {words}")
    return figure, fit


def kernels(chapter: Chapter, pooling: Pooling) -> None:
    """Every kernel at the reader's width."""
    chapter.figure(
        "kernels",
        figures.kernels_figure(KERNELS, pooling.kernel, pooling.width, _labels(chapter)),
        width=f"{pooling.width:g}",
        chosen=_kernel_name(chapter, pooling.kernel),
    )


def weights_map(chapter: Chapter, pooling: Pooling) -> None:
    """All queries by all keys."""
    fit = pooling.fit(_MAP_QUERIES)
    chapter.figure(
        "map",
        figures.map_figure(fit, _labels(chapter)),
        queries=len(fit.x_val),
        n=pooling.n,
        largest=f"{float(fit.weights.max()):.3f}",
        empty=int((~fit.weights.any(dim=1)).sum()),
    )


def claims(chapter: Chapter, pooling: Pooling, fit: Fit) -> None:
    """What must be true of pooling, on this data."""
    reached = ~fit.y_hat.isnan()
    sums = fit.weights[reached].sum(dim=1)
    scale = 1 + float(fit.y_train.abs().max())
    x, y = pooling.points()
    with chapter.claims():
        chapter.claim("sums", float((sums - 1).abs().max()) if len(sums) else 0.0, 1e-12, reached=int(reached.sum()))
        inside = fit.y_hat[reached]
        outside = torch.cat([inside - y.max(), y.min() - inside]).clamp_min(0)
        chapter.claim("between", float(outside.max()) if len(inside) else 0.0, 1e-12 * scale)
        chapter.claim("shortcut", shortcut_error(x, y, pooling.stretched()), 1e-10 * scale)
        if pooling.kernel == "gaussian":
            attended = gaussian_pooling_as_attention(x, y, fit.x_val, pooling.width)
            # q k / sigma^2 grows as the width shrinks, and its rounding with it.
            tolerance = 1e-14 * scale * (1 + (SPAN / pooling.width) ** 2)
            chapter.claim("attention", float((attended - fit.y_hat).abs().max()), tolerance)


def widths(chapter: Chapter, pooling: Pooling) -> None:
    """The book's four widths side by side."""
    if pooling.kernel == "constant":
        st.caption(chapter.words("constant"))
    title = chapter.words("figure.width-title")
    fits = [replace(pooling, width=width).fit(_MAP_QUERIES, title.format(width=f"{width:g}")) for width in BOOK_WIDTHS]
    chapter.figure(
        "widths",
        figures.panels_figure(fits, _labels(chapter)),
        kernel=_kernel_name(chapter, pooling.kernel),
        errors=", ".join(_error(chapter, fit) for fit in fits),
    )


def every_kernel(chapter: Chapter, pooling: Pooling) -> None:
    """All kernels at the reader's width side by side."""
    fits = [replace(pooling, kernel=name).fit(_MAP_QUERIES, _kernel_name(chapter, name)) for name in KERNELS]
    chapter.figure(
        "every-kernel",
        figures.panels_figure(fits, _labels(chapter)),
        width=f"{pooling.width:g}",
        errors=", ".join(_error(chapter, fit) for fit in fits),
    )


def learning(chapter: Chapter, pooling: Pooling) -> None:
    """The leave-one-out error by width, its minimum, and a button that takes it."""
    if pooling.kernel == "constant":
        chapter.text("learn.constant")
        return
    search, true_errors = _search(pooling.kernel, pooling.n, pooling.noise, pooling.seed)
    chapter.text("learn", n=pooling.n)
    unreached = int(search.errors.isnan().sum())
    chapter.figure(
        "learn",
        figures.width_figure(search, true_errors, pooling.width, _labels(chapter)),
        best=f"{search.best:.3f}",
        error=f"{search.error:.4f}",
        kernel=_kernel_name(chapter, pooling.kernel),
        true=f"{_true_best(search, true_errors):.3f}",
    )
    if unreached:
        first = float(search.widths[~search.errors.isnan()][0])
        st.caption(f":material/info: {chapter.words('learn.unreached', first=f'{first:.2f}')}")
    rounded = min(LARGEST_WIDTH, max(_STEP, round(search.best / _STEP) * _STEP))
    st.button(
        chapter.words("learn.take", width=f"{rounded:.2f}"),
        key=chapter.controls.key("take"),
        on_click=_take,
        args=(chapter.controls.key("width"), round(rounded, 2)),
        icon=":material/straighten:",
    )


def data(fit: Fit) -> dict[str, np.ndarray]:
    """What the picture shows, the curve first: query, truth, fit."""
    curve = torch.stack([fit.x_val, fit.truth, fit.y_hat], dim=1)
    points = torch.stack([fit.x_train, fit.y_train], dim=1)
    return {"curve": curve.numpy(), "points": points.numpy(), "weights": fit.weights.numpy()}


def _take(key: str, width: float) -> None:
    st.session_state[key] = width


@computed(says="measuring")
def _search(kernel: str, n: int, noise: float, seed: int) -> tuple[WidthSearch, Tensor]:
    """The search, and for each width it tried the error against the truth."""
    x, y = noisy_points(n, noise, seed)
    search = learn_width(x, y, KERNELS[kernel], _TRIED)
    fits = [nadaraya_watson(x, y, _QUERIES, with_width(KERNELS[kernel], float(width)))[0] for width in _TRIED]
    return search, torch.tensor([mean_squared_distance(fit, _QUERIES) for fit in fits], dtype=torch.float64)


def _true_best(search: WidthSearch, true_errors: Tensor) -> float:
    return float(search.widths[true_errors.nan_to_num(torch.inf).argmin()])


def _error(chapter: Chapter, fit: Fit) -> str:
    error = (fit.y_hat - fit.truth).square().nanmean()
    return chapter.words("error-of", fit=fit.name, error=f"{float(error):.3f}")


def _kernel_name(chapter: Chapter, kernel: str) -> str:
    return chapter.words(f"option.{kernel}")


def _labels(chapter: Chapter) -> dict[str, str]:
    return chapter.words.group("figure") | {name: _kernel_name(chapter, name) for name in KERNELS}
