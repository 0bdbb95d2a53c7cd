"""The fit: one query in numbers, the curve, the weights of all queries, and claims about them."""

import math

import numpy as np
import streamlit as st

from pages.attention_pooling.figures import fit_figure, map_figure
from pages.attention_pooling.parts import CURVE_QUERIES, MAP_QUERIES, Pooling, kernel_name, labels
from ui.chapter.chapter import Chapter
from viz_core.lessons.attention_pooling import (
    NARROW,
    SPAN,
    Fit,
    gaussian_pooling_as_attention,
    product_weights,
    range_excess,
    signed_weights,
    sum_error,
    unguarded_weights,
)


def readout(chapter: Chapter, pooling: Pooling) -> None:
    """Show the reader's query in numbers."""
    if pooling.kernel == "constant":
        st.caption(chapter.words("constant"))
    fit = pooling.at_query()
    weights, answer = fit.weights[0], float(fit.y_hat)
    values = {"query": f"{pooling.query:.2f}", "truth": f"{float(fit.truth):.4f}", "n": pooling.n}
    if np.isnan(answer):
        chapter.text("readout", answer=chapter.words("readout.none"), reached=0, **values)
        return
    heaviest = int(weights.argmax())
    reached = int((weights > 0).sum())
    largest = {"largest": f"{float(weights[heaviest]):.4f}", "key": f"{float(fit.x_train[heaviest]):.3f}"}
    table = chapter.words("readout", answer=f"{answer:.4f}", reached=reached, **values)
    st.markdown(f"{table}\n{chapter.words('readout.largest', **largest)}")
    if pooling.kernel == "gaussian" and reached < pooling.n:
        st.caption(chapter.words("too-small", missed=pooling.n - reached))


def picture(chapter: Chapter, pooling: Pooling, hide_answer: bool, broken: str) -> None:
    """Draw the fit and its claims, by a formula that may be broken."""
    intact = pooling.fit(CURVE_QUERIES)
    fit, at_query = (_broken(each, pooling, broken) for each in (intact, pooling.at_query()))
    answer = float(at_query.y_hat)
    shown = (fit.without_curves(), math.nan) if hide_answer else (fit, answer)
    figure = fit_figure(shown[0], pooling.query, shown[1], at_query.weights[0], labels(chapter))
    chapter.figure(
        "fit",
        figure,
        hide_answer=hide_answer,
        n=pooling.n,
        kernel=kernel_name(chapter, pooling.kernel),
        width=f"{pooling.width:g}",
        query=f"{pooling.query:.2f}",
        answer=chapter.words("no-answer") if np.isnan(answer) else f"{answer:.3f}",
    )
    if not hide_answer:
        _gaps(chapter, fit)
    claims(chapter, pooling, intact, broken)


def _broken(fit: Fit, pooling: Pooling, broken: str) -> Fit:
    """The fit by a broken formula; itself if nothing is broken."""
    if broken == "unguarded":
        return fit.weighted_by(unguarded_weights(fit.x_train, fit.x_val, NARROW))
    if broken == "signed":
        return fit.weighted_by(signed_weights(fit.x_train, fit.x_val, pooling.width))
    if broken == "no-bias":
        return fit.weighted_by(product_weights(fit.x_train, fit.x_val, pooling.width))
    return fit


def _gaps(chapter: Chapter, fit: Fit) -> None:
    gaps = fit.x_val[fit.y_hat.isnan()]
    if len(gaps):
        ends = {"low": f"{float(gaps[0]):.2f}", "high": f"{float(gaps[-1]):.2f}"}
        words = chapter.words("gaps", count=len(gaps), queries=len(fit.x_val), **ends)
        st.caption(f":material/info: {words}")


def weights_map(chapter: Chapter, pooling: Pooling) -> None:
    """Draw the weights of all queries on all keys."""
    fit = pooling.fit(MAP_QUERIES)
    chapter.figure(
        "map",
        lambda: map_figure(fit, labels(chapter)),
        queries=len(fit.x_val),
        n=pooling.n,
        largest=f"{float(fit.weights.max()):.3f}",
        empty=int((~fit.weights.any(dim=1)).sum()),
    )


def claims(chapter: Chapter, pooling: Pooling, fit: Fit, broken: str) -> None:
    """Claims about pooling on this data, one broken on request."""
    reached = ~fit.y_hat.isnan()
    scale = 1 + float(fit.y_train.abs().max())
    with chapter.claim_row("fit-claims"):
        chapter.claim("sums", sum_error(fit, broken == "unguarded"), 1e-12, reached=int(reached.sum()))
        inside = _broken(fit, pooling, broken).y_hat if broken == "signed" else fit.y_hat[reached]
        chapter.claim("between", range_excess(inside, fit.y_train), 1e-12 * scale)
        if pooling.kernel == "gaussian":
            # q k / sigma^2 grows as the width shrinks, and its rounding with it.
            tolerance = 1e-14 * scale * (1 + (SPAN / pooling.width) ** 2)
            given = fit.x_train, fit.y_train, fit.x_val, pooling.width
            attended = gaussian_pooling_as_attention(*given, key_term=broken != "no-bias")
            chapter.claim("attention", float((attended - fit.y_hat).abs().max()), tolerance)


def in_numbers(chapter: Chapter, pooling: Pooling) -> None:
    """The reader's query in numbers, the error of the fit, and the weights of all queries."""
    readout(chapter, pooling)
    fit = pooling.fit(CURVE_QUERIES)
    chapter.finding("fit", not np.isnan(fit.error), error=f"{fit.error:.3f}", queries=len(fit.x_val))
    weights_map(chapter, pooling)


def data(fit: Fit) -> dict[str, np.ndarray]:
    """The numbers of the figure for a download; the curve's columns are query, truth and fit."""
    return {
        "curve": np.stack([fit.x_val, fit.truth, fit.y_hat], axis=1),
        "points": np.stack([fit.x_train, fit.y_train], axis=1),
        "weights": fit.weights.numpy(),
    }
