"""An editable table whose rows are query parameters, so that a link shows the same table."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd
import streamlit as st

from ui.text.markdown import escape
from ui.text.words import load_words

Rows: TypeAlias = list[list[str]]


def edited_table(
    key: str, label: str, columns: Mapping[str, str], default: Sequence[Sequence[str]], most: int, is_open: bool
) -> Rows:
    """A table of text to edit, add to and delete from. Rows without any text are left out.

    Args:
        key: of the table, in the address too.
        label: what a note calls it.
        columns: the heading of each column, by its name.
        most: rows that an address may ask for.
        is_open: draw it; else its rows are those of the address or of before, as its script takes long to load.
    """
    first = [list(row) for row in default]
    held = _held(key)
    if not is_open:
        rows = _rows_to_start_from(key, label, first, most, held["rows"])
        return _keep(key, [row for row in rows if any(cell.strip() for cell in row)], first)

    def on_edit() -> None:
        held["edited"] = True

    is_new = f"{key}-{held['turn']}" not in st.session_state
    edited = held.pop("edited", False)
    if is_new or (not edited and _address_changed(key, held)):
        held["start"] = _rows_to_start_from(key, label, first, most, held["rows"] if is_new else None)
        held["turn"] += 1  # a new widget: the old one would keep its edits
    table = st.data_editor(
        pd.DataFrame(held["start"], columns=list(columns), dtype=str),
        key=f"{key}-{held['turn']}",
        num_rows="dynamic",
        hide_index=True,
        column_config={name: st.column_config.TextColumn(heading) for name, heading in columns.items()},
        on_change=on_edit,
        alt=label,
    )
    cells = [["" if pd.isna(cell) else str(cell) for cell in row] for row in table.itertuples(index=False)]
    return _keep(key, [row for row in cells if any(cell.strip() for cell in row)], first)


def read_rows(text: str, columns: int, most: int) -> Rows | None:
    """Parse rows from a query parameter; None unless it is a list of up to `most` rows of so many strings."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or len(rows) > most:
        return None
    whole = all(
        isinstance(row, list) and len(row) == columns and all(isinstance(cell, str) for cell in row) for row in rows
    )
    return rows if whole else None


def write_rows(rows: Rows) -> str:
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def _held(key: str) -> dict[str, Any]:
    """The session's state of a table: its rows, its first rows, and the query parameter."""
    empty = {"turn": 0, "start": None, "rows": None, "written": None}
    return st.session_state.setdefault(f"{key}-held", empty)


def _address_changed(key: str, held: Mapping[str, Any]) -> bool:
    """Whether the query parameter differs from the one last written: a link or the Back button."""
    return st.query_params.get(key) != held["written"]


def _rows_to_start_from(key: str, label: str, first: Rows, most: int, stored: Rows | None) -> Rows:
    """The rows of the query parameter, else those of an earlier visit, else the first rows."""
    requested = st.query_params.get(key)
    if requested is None:
        return first if stored is None else stored
    rows = read_rows(requested, len(first[0]), most)
    if rows is None:
        common = load_words("common")
        st.caption(common("fallback", label=label, asked=escape(requested[:40]), shown=common("first-rows")))
        return first
    return rows


def _keep(key: str, rows: Rows, first: Rows) -> Rows:
    """Store the rows and write them to the query parameter if they changed, for each write is a history entry."""
    wanted = None if rows == first else write_rows(rows)
    if wanted is None and key in st.query_params:
        del st.query_params[key]
    elif wanted is not None and st.query_params.get(key) != wanted:
        st.query_params[key] = wanted
    st.session_state[f"{key}-held"] |= {"rows": rows, "written": wanted}
    return rows
