"""What a chapter gives to take along: tables whose rows and columns are named, arrays, and its figure as a page."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd  # here, before any page runs: plotly fails in a thread that meets it half imported in another
import plotly.graph_objects as go

from serving.http.static_scripts import PLOTLY_FILE
from viz_core.runtime.assets import reading
from viz_core.runtime.numbers import ENGLISH

_LINE = "\r\n"  # RFC 4180; and with it a cell that holds either is quoted, or what follows would begin a row
_FORMULA, _NUMBER = re.compile(r"[=+\-@\t\r]"), re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?")


def table(
    array: np.ndarray, corner: str, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> bytes:
    """An array as CSV: the corner says what rows, columns and numbers are; each row and column has its name.

    The last axis goes across, all others down: a row of an array of three is named by both its places, "0 · 3".

    Args:
        rows: a name for each row; places from 0 unless given.
        columns: a name for each column; places from 0 unless given, or what the corner says where there is but one.
    """
    array = np.asarray(array)
    flat = array.reshape(-1, 1) if array.ndim < 2 else array.reshape(-1, array.shape[-1])
    places = np.ndindex(array.shape if array.ndim < 2 else array.shape[:-1])
    across = columns or [str(i) for i in range(flat.shape[1])]
    index = pd.Index([_safe(row) for row in rows or (" · ".join(map(str, place)) for place in places)], name=corner)
    return pd.DataFrame(flat, index, [_safe(name) for name in across]).to_csv(lineterminator=_LINE).encode()


def csv(frame: pd.DataFrame) -> bytes:
    """A table as CSV, a column for each of the frame's and none for its index."""
    safe = {_safe(name): frame[name].map(_safe) for name in frame.columns}
    return pd.DataFrame(safe).to_csv(index=False, lineterminator=_LINE).encode()


def _safe(cell: Any) -> Any:
    """A cell; a text that begins as a formula does is marked as text, for a spreadsheet would run it (OWASP)."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def listing(columns: Mapping[str, Sequence[str]]) -> bytes:
    """Columns of text as CSV, each under its name."""
    return csv(pd.DataFrame(columns))


def archive(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays by name, as NPZ."""
    buffer = io.BytesIO()
    named: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez_compressed(buffer, **named)
    return buffer.getvalue()


def page(figure: go.Figure, title: str, numbers: str = ENGLISH) -> bytes:
    """A figure as a page that opens without a network, dark on white; `numbers`: their separators."""
    look = {"template": "plotly_white", "separators": numbers}
    drawn = go.Figure(figure).update_layout(**look).to_html(include_plotlyjs=False)
    with reading(PLOTLY_FILE):
        head = f"<head><title>{html.escape(title)}</title><script>{PLOTLY_FILE.read_text('utf-8')}</script>"
    return drawn.replace("<head>", head, 1).encode()
