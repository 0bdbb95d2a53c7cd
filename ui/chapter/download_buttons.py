"""The downloads of a page: its arrays as NPZ and CSV, tables as CSV, and its figure as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from ui.chapter.parts import Deferred, resolve
from ui.compute.slots import run_in_slot
from ui.text.markdown import unescape
from ui.text.words import Words
from ui.widgets.downloads import archive, array_csv, html_page, table_csv


class DownloadButtons:
    """The download buttons of one page; each file is made when it is requested, in a slot."""

    def __init__(self, words: Words, common: Words) -> None:
        self.words, self.common = words, common

    def draw(
        self,
        arrays: Mapping[str, Deferred[np.ndarray]],
        *,
        figure: Deferred[go.Figure] | None = None,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        corner: str = "corner",
        tables: Mapping[str, Callable[[], pd.DataFrame]] = MappingProxyType({}),
    ) -> None:
        """Draw a button for all arrays as NPZ, the first one as CSV, and the figure as a page of its own.

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
            if figure is not None:
                self._button(
                    "html",
                    lambda: html_page(resolve(figure), self.words.title, language),
                    "text/html",
                )

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
