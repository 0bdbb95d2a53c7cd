"""A choice in the URL, by names that are the same in every language: a link made in one opens in another.

Streamlit's own binding (`bind="query-params"`) writes the label that a reader sees. Numbers, texts and switches use it.
"""

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

import streamlit as st

from ui.streamlit_internals.script_run import is_history_navigation
from viz_core.runtime.assets import ASSETS, reading

Value = TypeVar("Value")
Names = tuple[str, ...]


def follow_former_link(chapter: str) -> None:
    """Rewrite the choices in the address that a chapter has since renamed or moved (`former-links.toml`)."""
    for key, values in _former_links().get(chapter, {}).items():
        now = values.get(st.query_params.get(key, "").casefold())
        if now is not None:
            del st.query_params[key]
            other, _, value = now.rpartition("=")
            st.query_params[other or key] = value


@cache
def _former_links() -> dict[str, dict[str, dict[str, str]]]:
    path = ASSETS / "text" / "former-links.toml"
    with reading(path):
        return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class _LastRun(Generic[Value]):
    """What a run of the page left.

    Attributes:
        names: in the URL.
        value: of the widget.
        stale: names that the URL had before we wrote it, until the browser shows that it has the new one.
    """

    names: Names
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
    """Draw a widget whose value is also a query parameter; the default leaves the URL empty.

    The last to change decides: the widget (by its reader, or by a button that sets it), or the URL (by a link or the
    Back button). On Back the URL decides, whatever the browser's widgets hold.

    Args:
        key: of the widget and of the parameter.
        read: the value that names in a URL stand for; None where they stand for nothing.
        write: the names of a value.
        offered: whether a value can be chosen now.
        draw: the widget, which begins with this value and falls back to it where labels change; with None where its
            state was set in this run, and it must have no default of its own.

    Returns:
        The value, and whether the URL requested one that cannot be chosen.
    """
    requested = tuple(st.query_params.get_all(key))
    last: _LastRun[Value] | None = st.session_state.get(f"{key}-seen")
    has_state = key in st.session_state and offered(st.session_state[key])
    changed = has_state and (last is None or st.session_state[key] != last.value)
    refused = False
    begin: Value | None = st.session_state[key] if has_state else None
    navigated = last is not None and not changed and requested != last.names and requested not in last.stale
    # Nobody chose anything and there is another default, as with another text: an empty address means the new one.
    default_changed = last is not None and not changed and last.names == () and last.value != default
    if not has_state or navigated or default_changed or is_history_navigation():
        found = read(requested) if requested else default
        refused = found is None
        begin = default if found is None else found
        if key in st.session_state:
            st.session_state[key], begin = begin, None
    value = draw(begin)
    names = () if value == default else write(value)
    stale = frozenset() if names == requested else frozenset({requested}) | (last.stale if last else frozenset())
    if names != tuple(st.query_params.get_all(key)):
        if names:
            st.query_params[key] = names
        else:
            del st.query_params[key]
    st.session_state[f"{key}-seen"] = _LastRun(names, value, stale - {names})
    return value, refused


def discard_out_of_range(key: str, low: float, high: float) -> None:
    """Discard a number from before another control changed the limits: Streamlit raises an error at it."""
    number = st.session_state.get(key)
    if isinstance(number, int | float) and not low <= number <= high:
        del st.session_state[key]


def is_infinite(requested: str | None) -> bool:
    """Whether a query parameter is an infinite number."""
    try:
        return requested is not None and math.isinf(float(requested))
    except ValueError:
        return False


def is_truncated(requested: str, value: object) -> bool:
    """Whether a query parameter was a fraction that Streamlit truncated to an integer."""
    try:
        number = float(requested)
    except ValueError:
        return False
    return type(value) is int and math.isfinite(number) and not number.is_integer()


def is_same(requested: str, value: object, label: str) -> bool:
    """Whether a query parameter that Streamlit dropped was the default, rather than an impossible value."""
    if requested.casefold() in {str(value).casefold(), label.casefold()}:
        return True
    try:
        return isinstance(value, int | float) and float(requested) == value
    except ValueError:
        return False
