"""Cosine similarity of a text with each patch of a picture, and the weights of the pooling."""

from __future__ import annotations

from functools import partial

import numpy as np
from jaxtyping import Float

from serving.requests.hub import HubRequest
from serving.requests.lab_queries import likeness, pooling
from ui.blocks.over_picture import over_picture_figure
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.markdown import escape
from viz_core.hub import Frame, HubRun

_ROUNDING = 1e-5


def show_similarity(chapter: Chapter, request: HubRequest, run: HubRun) -> None:
    """Cosines of the text with the picture and with each of its patches."""
    cosines, residual = evaluate(request, likeness)
    frame = run.frame
    if frame is None:
        return
    pooled = evaluate(request, pooling)
    rows, columns = frame.grid
    patches = cosines[len(cosines) - rows * columns :].reshape(rows, columns)
    most, least = (np.unravel_index(int(i), patches.shape) for i in (patches.argmax(), patches.argmin()))
    with chapter.card("likeness"):
        text_name = "likeness" if pooled is None else "likeness-pooled"
        chapter.text(text_name, text=escape(request.text), cosine=f"{cosines[0]:.3f}")
        names = chapter.words.group("figure")
        maps = {chapter.words("title.likeness"): patches}
        chapter.figure(
            "likeness",
            partial(over_picture_figure, frame.image, maps, None, names, "cosine", lowest=float(patches.min())),
            text=escape(request.text),
            most=f"{patches[most]:.3f}",
            row=most[0] + 1,
            column=most[1] + 1,
            least=f"{patches[least]:.3f}",
            least_row=least[0] + 1,
            least_column=least[1] + 1,
        )
        with chapter.claim_row("claims-likeness"):
            chapter.claim("likeness", residual, _ROUNDING)
        if pooled is not None:
            _show_pooling(chapter, frame, pooled)


def _show_pooling(chapter: Chapter, frame: Frame, weights: Float[np.ndarray, "heads patches"]) -> None:
    """One head of the pooling over the picture, beside the mean of all."""
    heads, count = weights.shape
    head = int(chapter.controls.slider("pooling", 1, heads, 1)) if heads > 1 else 1
    own, mean = weights[head - 1].reshape(frame.grid), weights.mean(axis=0).reshape(frame.grid)
    most = np.unravel_index(int(own.argmax()), own.shape)
    maps = {chapter.words("title.pooled"): own, chapter.words("title.pooled-mean"): mean}
    chapter.figure(
        "pooled",
        partial(over_picture_figure, frame.image, maps, None, chapter.words.group("figure")),
        head=head,
        heads=heads,
        row=most[0] + 1,
        column=most[1] + 1,
        most=f"{own[most]:.3f}",
        even=f"{1 / count:.3f}",
    )
