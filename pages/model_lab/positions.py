"""A model's own position scheme, drawn from its real parameters."""

from __future__ import annotations

from functools import partial

import streamlit as st
from torch import Tensor

from pages.model_lab import position_figures as figures
from ui.blocks.figures import slopes_figure
from ui.chapter.chapter import Chapter
from viz_core.hub import HubCard, Positions
from viz_core.lessons.model_lab.position_measures import (
    MOST_ROWS,
    bias_by_offset,
    cosines,
    wavelengths,
)

_REACH = 160


def positions(chapter: Chapter, card: HubCard, schemes: tuple[Positions, ...]) -> None:
    """Every scheme the model has; one at a time where there are several."""
    if not schemes:
        st.info(chapter.words("no-positions"), icon=":material/info:")
        return
    scheme = schemes[0]
    if len(schemes) > 1:
        places = {f"{i}. {_named(chapter, one)}": one for i, one in enumerate(schemes, start=1)}
        scheme = places[str(chapter.controls.select("scheme", tuple(places), next(iter(places))))]
    if scheme.where:
        st.caption(chapter.words("where", where=scheme.where))
    if scheme.scheme in ("learned", "sinusoidal"):
        _table(chapter, scheme)
    elif scheme.scheme == "rotary":
        _rotary(chapter, card, scheme)
    elif scheme.scheme == "t5":
        _t5(chapter, scheme)
    else:
        _alibi(chapter, scheme)


def _named(chapter: Chapter, scheme: Positions) -> str:
    """Stack and scheme: "encoder, T5's learned bias"."""
    name, part = chapter.common(f"head-kind.{scheme.stack}"), chapter.words(f"scheme.{scheme.scheme}")
    return chapter.common("named-part", name=name, part=part)


def _table(chapter: Chapter, scheme: Positions) -> None:
    table, names = scheme.values[scheme.num_special :], chapter.words.group("figure")
    rows, width = table.shape
    chapter.text("table", rows=f"{rows:,}", width=width, kind=chapter.words(f"scheme.{scheme.scheme}"))
    chapter.lazy("table", lambda: _table_pictures(chapter, table, names), 440)


def _table_pictures(chapter: Chapter, table: Tensor, names: dict[str, str]) -> None:
    rows, width = table.shape
    shown = min(rows, MOST_ROWS)
    alike = cosines(table)
    adjacent = float(alike.diagonal(1).mean()) if rows > 1 else 1.0
    far = float(alike[0, -1])
    left, right = st.columns(2)
    with left:
        chapter.heatmap("table", figures.table_heatmap(table, names), rows=f"{shown:,}", width=width)
    with right:
        heatmap = figures.cosine_heatmap(table, names)
        chapter.heatmap("similarity", heatmap, rows=f"{shown:,}", near=f"{adjacent:.2f}", far=f"{far:.2f}")


def _rotary(chapter: Chapter, card: HubCard, scheme: Positions) -> None:
    names, frequencies = chapter.words.group("figure"), scheme.values.numpy()
    room = card.max_tokens
    waves = wavelengths(scheme.values)
    slow = int((waves > room).sum()) if room else 0
    limit = chapter.words("limit", count=f"{room:,}") if room else chapter.words("no-limit")
    chapter.text(
        "rotary", pairs=len(frequencies), shortest=f"{float(waves.min()):,.1f}", longest=f"{float(waves.max()):,.0f}"
    )
    chapter.figure(
        "waves",
        partial(figures.wavelengths_figure, frequencies, room, names),
        pairs=len(frequencies),
        slow=slow,
        limit=limit,
        shortest=f"{float(waves.min()):,.1f}",
        longest=f"{float(waves.max()):,.0f}",
    )


def _t5(chapter: Chapter, scheme: Positions) -> None:
    names = chapter.words.group("figure")
    buckets, heads = scheme.values.shape
    bias = bias_by_offset(scheme.values, scheme.bidirectional, scheme.max_distance, _REACH)
    head = int(chapter.controls.slider("head", 1, heads, 1)) - 1 if heads > 1 else 0
    chapter.text("t5", buckets=buckets, heads=heads, distance=scheme.max_distance)
    row = bias[head]
    chapter.figure(
        "t5",
        partial(figures.bias_figure, bias.numpy(), _REACH, head, names),
        head=head + 1,
        heads=heads,
        best=f"{int(row.argmax()) - _REACH:+d}".replace("+0", "0"),
        most=f"{float(row.max()):.2f}",
        least=f"{float(row.min()):.2f}",
    )


def _alibi(chapter: Chapter, scheme: Positions) -> None:
    names, slopes = chapter.words.group("figure"), scheme.values
    heads = len(slopes)
    head = int(chapter.controls.slider("head", 1, heads, 1)) - 1 if heads > 1 else 0
    chapter.text("alibi", heads=heads)
    chapter.figure(
        "slopes",
        partial(slopes_figure, slopes.numpy(), head, names),
        heads=heads,
        head=head + 1,
        slope=f"{float(slopes[head]):.4g}",
    )
