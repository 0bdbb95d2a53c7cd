"""The downloads of a page: its arrays as NPZ and CSV, and tables as CSV."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd  # imported before any page runs: plotly fails in a thread while another thread is importing pandas
import streamlit as st

from ui.chapter.parts import Deferred, resolve
from ui.compute.slots import run_in_slot
from ui.text.markdown import unescape
from ui.text.numbers import separators
from ui.text.words import Words

_LINE = "\r\n"  # RFC 4180; with it pandas quotes a cell that contains either character
_FORMULA, _NUMBER = re.compile(r"[=+\-@\t\r]"), re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?")


def array_csv(
    array: np.ndarray,
    corner: str,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    language: str = "en",
) -> bytes:
    """Return an array as CSV, with a name for each row and column.

    The last axis becomes the columns, all others the rows: those of an array with three axes are named "0 · 3".

    Args:
        corner: header of the column of row names: what rows, columns and values are.
        rows: a name for each row; indices from 0 unless given.
        columns: a name for each column; indices from 0 unless given.
        language: whose spreadsheets open the file: see `_written`.
    """
    array = np.asarray(array)
    flat = array.reshape(-1, 1) if array.ndim < 2 else array.reshape(-1, array.shape[-1])
    indices = np.ndindex(array.shape if array.ndim < 2 else array.shape[:-1])
    names = columns or [str(i) for i in range(flat.shape[1])]
    row_names = pd.Index(
        [_safe(row) for row in rows or (" · ".join(map(str, index)) for index in indices)], name=corner
    )
    return _written(pd.DataFrame(flat, row_names, [_safe(name) for name in names]), language, index=True)


def table_csv(frame: pd.DataFrame, language: str = "en") -> bytes:
    """Return a table as CSV, without its index."""
    safe = {_safe(name): frame[name].map(_safe) for name in frame.columns}
    return _written(pd.DataFrame(safe), language, index=False)


def _written(frame: pd.DataFrame, language: str, index: bool) -> bytes:
    """Return CSV as the spreadsheets of a language open it.

    Where the comma is the decimal separator, columns are separated by semicolons. Excel reads other letters than ASCII
    only after a byte order mark.
    """
    decimal = separators(language)[0]
    text = frame.to_csv(sep=";" if decimal == "," else ",", decimal=decimal, index=index, lineterminator=_LINE)
    return text.encode("utf-8" if text.isascii() else "utf-8-sig")


def _safe(cell: Any) -> Any:
    """Return a cell, with a quote before text that begins like a formula: a spreadsheet would run it (OWASP)."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def listing(columns: Mapping[str, Sequence[str | float]], language: str = "en") -> bytes:
    """Return columns of text or numbers as CSV, each under its name."""
    return table_csv(pd.DataFrame(columns), language)


def archive(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays by name as NPZ."""
    buffer = io.BytesIO()
    named: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez_compressed(buffer, **named)
    return buffer.getvalue()


class DownloadButtons:
    """The download buttons of one page; each file is made when it is requested, in a slot."""

    def __init__(self, words: Words, common: Words) -> None:
        self.words, self.common = words, common

    def draw(
        self,
        arrays: Mapping[str, Deferred[np.ndarray]],
        *,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        corner: str = "corner",
        tables: Mapping[str, Callable[[], pd.DataFrame]] = MappingProxyType({}),
    ) -> None:
        """Draw a button for all arrays as NPZ, and for the first one as CSV.

        Args:
            arrays: by name; at least one.
            rows: names of the first array's rows; indices from 0 unless given.
            columns: names of its columns, likewise.
            corner: `download.CORNER` names rows, columns and values in the CSV file.
            tables: each a CSV file of its own, whose button is labelled `download-table.NAME`.
        """
        first, axes = next(iter(arrays.values())), unescape(self.words(f"download.{corner}"))
        language = self.words.language
        with st.container(horizontal=True, key="downloads"):
            self._button("csv", lambda: array_csv(resolve(first), axes, rows, columns, language), "text/csv")
            self._button(
                "npz",
                lambda: archive({name: resolve(array) for name, array in arrays.items()}),
                "application/octet-stream",
            )
            for name, make in tables.items():
                self.table(name, make)

    def table(self, name: str, make: Callable[[], pd.DataFrame]) -> None:
        """Draw a button, `download-table.NAME`, for a table as CSV, with its columns named by `csv-column.COLUMN`."""
        columns = self.words.group("csv-column")
        language = self.words.language
        self._button("csv", lambda: table_csv(make().rename(columns=columns), language), "text/csv", name)

    def text(self, key: str, label: str, file: str, text: str) -> None:
        """Draw a button for a Markdown file."""
        icon = ":material/download:"
        st.download_button(label, text, file, "text/markdown", key=key, icon=icon, type="tertiary", on_click="ignore")

    def _button(self, suffix: str, make: Callable[[], bytes], mime: str, part: str = "") -> None:
        section = f"download-table.{part}"
        st.download_button(
            self.words(section) if part else self.common(f"download.{suffix}"),
            partial(run_in_slot, make, "download"),
            file_name=f"{self.words.stem_of_part(section, part) if part else self.words.stem}.{suffix}",
            mime=mime,
            key=f"download-{part}.{suffix}" if part else f"download-{suffix}",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )
