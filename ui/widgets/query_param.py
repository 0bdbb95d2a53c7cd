"""A choice in the address, by names that are the same in every language: a link made in one opens in another.

Streamlit's own binding (`bind="query-params"`) writes the label that a reader sees. Numbers, texts and switches use it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

Value = TypeVar("Value")
Names = tuple[str, ...]


@dataclass(frozen=True)
class _Seen(Generic[Value]):
    """What the address said when the page last ran, and what was chosen.

    Attributes:
        stale: what the address said before we wrote it, until the browser shows that it has heard.
    """

    asked: Names
    value: Value
    stale: frozenset[Names]


def in_address(
    key: str,
    default: Value,
    read: Callable[[Names], Value | None],
    write: Callable[[Value], Names],
    offered: Callable[[Value], bool],
    draw: Callable[[Value | None], Value],
) -> tuple[Value, bool]:
    """Draw a widget whose value the address holds as well; the default leaves the address empty.

    Whoever moved last decides: the reader, who works the widget (or a button that sets what it holds), or the address,
    by a link or the Back button. Who goes back means the address, whatever their browser held until then.

    Args:
        key: of the widget and of the parameter.
        read: what names in an address stand for; None where they stand for nothing.
        write: the names of a value.
        offered: whether a value can be chosen now.
        draw: the widget, which begins with this value and falls back to it where labels change; with None where it was
            told by its state in this run, and shall have no default of its own.

    Returns:
        What is chosen, and whether the address asked for something that cannot be.
    """
    asked = tuple(st.query_params.get_all(key))
    seen: _Seen[Value] | None = st.session_state.get(f"{key}-seen")
    held = key in st.session_state and offered(st.session_state[key])
    moved = held and (seen is None or st.session_state[key] != seen.value)
    refused = False
    begin: Value | None = st.session_state[key] if held else None
    led = seen is not None and not moved and asked != seen.asked and asked not in seen.stale
    if not held or led or _goes_back():
        found = read(asked) if asked else default
        refused = found is None
        begin = default if found is None else found
        if key in st.session_state:
            st.session_state[key], begin = begin, None
    value = draw(begin)
    wanted = () if value == default else write(value)
    stale = frozenset() if wanted == asked else frozenset({asked}) | (seen.stale if seen else frozenset())
    if wanted != tuple(st.query_params.get_all(key)):
        if wanted:
            st.query_params[key] = wanted
        else:
            del st.query_params[key]
    st.session_state[f"{key}-seen"] = _Seen(wanted, value, stale - {wanted})
    return value, refused


def _goes_back() -> bool:
    """Whether this run answers the Back button, or what does as it does."""
    run = get_script_run_ctx()
    return run is not None and run.is_history_navigation
