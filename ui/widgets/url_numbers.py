"""Numbers in the URL that Streamlit's own binding (`bind="query-params"`) refuses, truncates or fails at."""

from __future__ import annotations

import math

import streamlit as st


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
