"""Heatmaps of any size on a canvas: a million cells as fast as plotly draws a few hundred."""

from __future__ import annotations

from ui.widgets.component import component

_mount = component("heatmap")


def draw_heatmap(key: str, data: bytes) -> None:
    """Draw what `viz_core.figures.heatmap.encode_heatmap` made; new data under the same key replaces it in place."""
    _mount(key=key, data=data)
