"""A drawing canvas; returns the drawing as the bytes of a PNG."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

import streamlit as st

from ui.widgets.component import component

_MOST_CHARACTERS = 2**20  # of the message; paper of 280 x 280 pixels takes a few thousand
_START = "data:image/png;base64,"

_mount = component("drawing")


def drawing(key: str, words: Mapping[str, str]) -> bytes | None:
    """Show the canvas and return its content, or None while it is blank.

    Args:
        words: "paper" (what it is, for a screen reader), "size", "shade", "dark", "middle", "light", "rub", "undo",
            "clear", "hint", "down" and "up".
    """
    _mount(key=key, data=dict(words), on_drawing_change=lambda: None)
    message = (st.session_state.get(key) or {}).get("drawing")
    if not isinstance(message, str) or not message.startswith(_START) or len(message) > _MOST_CHARACTERS:
        return None
    try:
        return base64.b64decode(message.removeprefix(_START), validate=True)
    except binascii.Error:
        return None
