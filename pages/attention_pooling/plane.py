"""Pooling in the plane: labels as values, a width per coordinate, and the effect of rotation and translation."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from pages.attention_pooling.plane_figures import shares_figure
from pages.attention_pooling.pooling import labels
from ui.chapter.chapter import Chapter
from viz_core.lessons.attention_pooling.in_the_plane import (
    labelled_points,
    left_out_right,
    share_map,
    transformed_error,
)

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
