"""Attention of a word to the picture in its text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from pages.model_lab.figures import fingerprint_figure
from serving.requests.hub import HubRequest
from ui.blocks.over_picture import over_picture_figure
from ui.blocks.sentence import choose_token
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.head_link import head_link
from ui.text.markdown import escape
from ui.widgets.figure_style import Labels
from viz_core.hub import HubRun
from viz_core.lessons.model_lab.queries import picture_shares, row_of_heads
from viz_core.view.state import ViewState

_GROUP = "decoder-self"


def in_picture(chapter: Chapter, request: HubRequest, run: HubRun, view: ViewState) -> None:
    """The open head's row of one word, over the picture; and how much each head gives to the picture."""
    count = len(run.tokens)
    first = max(int(grid.places.max()) for grid in run.patches) + 1  # words after the picture: the others hardly see it
    pinned = [pin.index for pin in view.pins if pin.axis == "query" and pin.index >= first]
    with chapter.card("in-picture"):
        token = pinned[0] if pinned else min(max(first, run.num_prompt_tokens - 1), count - 1)
        if not pinned and count - first > 1:
            token = choose_token(chapter, "looking", [each.label for each in run.tokens], first, token)
        layers = sum(call.stack == "decoder" for call in run.trace)
        here = view.group == _GROUP
        layer, head = (view.layer, view.head) if here else (layers // 2, 0)
        _over(chapter, request, run, token, layer, head)
        _shares(chapter, request, run, token)


def _over(chapter: Chapter, request: HubRequest, run: HubRun, token: int, layer: int, head: int) -> None:
    rows = evaluate(request, row_of_heads, f"decoder.{layer}.self", token)
    own = rows[head]
    best = max(run.patches, key=lambda grid: float(own[grid.places].max()))
    row, column = np.unravel_index(int(own[best.places].argmax()), best.shape)
    left, top, right, bottom = (f"{edge:.0f}" for edge in best.box_of(int(row), int(column)))
    values: dict[str, Any] = {"token": escape(run.tokens[token].label), "linked": head_link(_GROUP, layer, head)}
    chapter.text("in-picture", **values)
    words = chapter.words
    maps = {words("title.head" if i == 0 else "title.whole"): grid.over(own) for i, grid in enumerate(run.patches)}
    maps[words("title.mean")] = run.patches[0].over(rows.mean(axis=0))
    chapter.figure(
        "in-picture",
        over_patches_figure(run, maps, words.group("figure")),
        share=f"{sum(float(own[grid.places].sum()) for grid in run.patches):.1%}",
        patch=run.tokens[int(best.places[row, column])].label,
        most=f"{float(own[best.places].max()):.3f}",
        next=escape(run.tokens[token + 1].label) if token + 1 < len(run.tokens) else words("not-yet"),
        left=left,
        top=top,
        right=right,
        bottom=bottom,
        **values,
    )


def over_patches_figure(run: HubRun, maps: Mapping[str, Float[np.ndarray, "_ _"]], labels: Labels) -> go.Figure:
    """Rows of a map over the part of the picture that the model was shown, side by side.

    Args:
        maps: by their titles, each as its grid of patches has it.
        labels: names "row", "column" and "weight".
    """
    if run.image is None:
        raise ValueError("run: expected one with a picture")
    grid = run.patches[0]
    left, top, right, bottom = grid.box
    rows, columns = grid.shape
    part = run.image.crop((round(left), round(top), max(round(right), 1), max(round(bottom), 1)))
    aspect = (bottom - top) / rows / ((right - left) / columns)
    return over_picture_figure(part, maps, None, labels, aspect=aspect)


def _shares(chapter: Chapter, request: HubRequest, run: HubRun, token: int) -> None:
    """Share of attention that each head gives to the picture."""
    shares = evaluate(request, picture_shares, token)
    layer, head = (int(i) for i in np.unravel_index(int(shares.argmax()), shares.shape))
    chapter.figure(
        "picture-share",
        partial(fingerprint_figure, shares, "share", chapter.words.group("figure")),
        token=escape(run.tokens[token].label),
        layers=shares.shape[0],
        heads=shares.shape[1],
        layer=layer + 1,
        head=head + 1,
        linked=head_link(_GROUP, layer, head),
        most=f"{shares.max():.2f}",
        least=f"{shares.min():.2f}",
    )
