"""The attention view: every head as a thumbnail, the opened one in full, and the sentence shaded by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from ui.component import component
from viz_core.figures.attention_payload import MapGroup, ViewState, encode_view
from viz_core.figures.view_state import read_link, read_message, write_link

__all__ = ["MapGroup", "ViewState", "attention_view"]

# One idea a file, joined into the one module Streamlit takes: what is used comes before what uses it.
_SCRIPTS = (
    "shared/frame",
    "shared/canvas",
    "shared/mount",
    "payload",
    "words",
    "colours",
    "raster",
    "cells",
    "map_layout",
    "map_draw",
    "heads",
    "pointer",
    "map_events",
    "sentence",
    "main",
)

_mount = component("attention_view", *_SCRIPTS)


def attention_view(
    groups: Sequence[MapGroup],
    words: Mapping[str, str],
    *,
    key: str,
    default: ViewState | None = None,
    head_param: str = "head",
    pin_param: str = "pin",
    language: str = "en",
) -> ViewState:
    """Draw the view and return which head is open and what is pinned. Both stand in the address bar.

    Groups keep their thumbnails once computed: cache them with the trace they come from, and a
    click costs no more than the exact maps it needs.

    Args:
        groups: the kinds of maps, each a tab.
        words: `WORD_NAMES` of `viz_core.figures.attention_payload`, and "bad_link", shown where the
            address asks for a head or token that is not there.
        key: identifies this view on its page.
        default: what is open where the address names nothing; the first head unless given.
        head_param: query parameter of the opened head ("cross.2.5": group, layer and head from 0).
        pin_param: query parameter of the pinned token ("q10" or "k3").
        language: of the words, as a BCP 47 tag.

    Raises:
        ValueError: if there are no groups, the default is not among them, or a word is missing.
    """
    if not groups:
        raise ValueError("groups: expected at least one, got none")
    default = default or ViewState(groups[0].id, 0, 0)
    message = (st.session_state.get(key) or {}).get("view")
    turn = _turn(message)
    turn_key = f"{key}-turn"
    # Whatever moved last wins: a move of the reader that the address does not show yet, else the address.
    if turn > st.session_state.get(turn_key, 0):
        st.session_state[turn_key] = turn
        state = read_message(message, groups) or default
        _write_address(dict(zip((head_param, pin_param), write_link(state, default), strict=True)))
    else:
        link = st.query_params.get(head_param), st.query_params.get(pin_param)
        state, understood = read_link(*link, groups, default)
        if not understood:
            st.caption(words["bad_link"])
    data = encode_view(groups, state, words, turn=st.session_state.get(turn_key, 0), language=language)
    _mount(key=key, data=data, on_view_change=lambda: None)
    return state


def _turn(message: Any) -> int:
    """How many moves the browser has reported; 0 before the first."""
    turn = message.get("turn") if isinstance(message, Mapping) else None
    return turn if isinstance(turn, int) else 0


def _write_address(link: dict[str, str | None]) -> None:
    """Put the state into the address; each change is an entry in the browser's history, so none without need."""
    changed = {name: value for name, value in link.items() if value != st.query_params.get(name)}
    for name in [name for name, value in changed.items() if value is None]:
        del st.query_params[name]
    st.query_params.update({name: value for name, value in changed.items() if value is not None})
