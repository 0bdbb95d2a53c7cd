"""Residuals as bars."""

from __future__ import annotations

from ui.blocks.figures import residual_figure
from ui.widgets.figure_style import ACCENT


def test_residuals_say_their_number_even_where_log_has_none() -> None:
    names = {"a": "A", "b": "B"}
    bar = residual_figure({"a": 0.0, "b": 2.0}, 1e-3, "title", names).data[0]
    assert bar.y == ("B", "A")
    assert bar.text == ("2", "0")
    assert bar.x[1] > 0
    assert bar.marker.color[0] == ACCENT != bar.marker.color[1]
