"""Heatmaps of any size on a canvas: a million cells take as long as a few hundred with plotly."""

from __future__ import annotations

from ui.widgets.component import component

_mount = component("heatmap")


def draw_heatmap(key: str, data: bytes) -> None:
    """Draw an encoded heatmap (`ui.widgets.heatmap_payload.encode_heatmap`); new data under its key replaces it."""
    _mount(key=key, data=data)
