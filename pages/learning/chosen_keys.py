"""The key that a reader chooses for each query of a head: a click in the map, or a query and then a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import streamlit as st

from pages.learning.figures import pattern_figure
from pages.learning.two_heads import COUNT
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.widgets.chart import Point
from ui.widgets.query_param import in_address
from viz_core.lessons.learning.two_heads import Outcome

Moves: TypeAlias = tuple[tuple[int, int], ...]
"""Query and key of each choice, in order; a later choice for a query replaces an earlier one."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MOST = 60  # moves in the URL, as many as can be undone


def read_moves(text: str) -> Moves | None:
    """Return the moves that digits stand for, "10" for query 1 and key 0; None if a key comes after its query."""
    if not re.fullmatch(rf"([0-9a-z]{{2}}){{0,{_MOST}}}", text):
        return None
    moves = tuple((_DIGITS.index(query), _DIGITS.index(key)) for query, key in zip(text[::2], text[1::2], strict=True))
    return moves if all(key <= query < COUNT for query, key in moves) else None


def write_moves(moves: Moves) -> str:
    """Return the digits that `read_moves` reads."""
    return "".join(_DIGITS[query] + _DIGITS[key] for query, key in moves)


def add_move(moves: Moves, query: int, key: int) -> Moves:
    """Return the moves and one more, unless it changes nothing: a finger's tap on a map is sent twice.

    Once they are too many, only the last one for each query is left to undo.
    """
    last = dict(moves)
    if last.get(query) == key:
        return moves
    return (*(moves if len(moves) < _MOST else tuple(last.items())), (query, key))


def keys_of(moves: Moves) -> tuple[int, ...]:
    """Return the key of each query, -1 where none is chosen."""
    last = dict(moves)
    return tuple(last.get(query, -1) for query in range(COUNT))


def stored_moves(chapter: Chapter, name: str) -> Moves:
    """Return the moves in the URL or of this session; a note says so where the URL has none that can be shown."""
    key = chapter.controls.key(name)
    none: Moves = ()
    requested = st.query_params.get(key, "")

    def draw(begin: Moves | None) -> Moves:
        st.session_state.setdefault(key, begin)
        return _moves(key)

    moves, refused = in_address(
        key,
        none,
        lambda names: read_moves(names[-1]),
        lambda moves: (write_moves(moves),),
        lambda moves: isinstance(moves, tuple),
        draw,
    )
    if refused:
        label, shown = chapter.words.label(name), chapter.words("no-choice")
        st.caption(chapter.common("fallback", label=label, asked=escape(requested[:40]), shown=shown))
    return moves


def _moves(key: str) -> Moves:
    moves: Moves = st.session_state[key]
    return moves


def choose_keys(chapter: Chapter, name: str, layer: int, letters: Sequence[str], outcome: Outcome, start: int) -> None:
    """Draw the map of the reader's head, and what changes it.

    Args:
        name: of the control that stores the moves.
        layer: 0 or 1.
        start: the query whose key is chosen first.
    """
    controls = chapter.controls
    key, query_key, key_key = controls.key(name), controls.key(f"{name}-query"), controls.key(f"{name}-key")
    moves = _moves(key)
    labels = [f"{letter} {place}" for place, letter in enumerate(letters[:COUNT], 1)]

    def choose(query: int, chosen: int | None) -> None:
        if chosen is not None and chosen <= query:
            st.session_state[key] = add_move(_moves(key), query, chosen)
            st.session_state[query_key] = min(query + 1, COUNT - 1)

    def clicked(point: Point) -> None:
        if (pair := read_cell(point)) is not None:
            choose(*pair)

    draw_pattern(chapter, layer, letters, outcome, clicked)
    following = min(moves[-1][0] + 1, COUNT - 1) if moves else start
    begin = None if query_key in st.session_state else following
    query = st.segmented_control(
        controls.words.label("query"),
        range(COUNT),
        default=begin,
        required=True,
        format_func=labels.__getitem__,
        key=query_key,
    )
    query = following if query is None else query
    st.session_state[key_key] = dict(moves).get(query)
    st.segmented_control(
        controls.words.label("key"),
        range(query + 1),
        format_func=labels.__getitem__,
        key=key_key,
        on_change=lambda: choose(query, st.session_state[key_key]),
    )
    with st.container(horizontal=True):
        last = moves[-1][0] if moves else start
        for action, icon, left, then in (("undo", "undo", moves[:-1], last), ("clear", "delete", (), start)):
            icon = f":material/{icon}:"
            on_click = partial(st.session_state.update, {key: left, query_key: then})
            st.button(chapter.words(action), icon=icon, key=f"{key}-{action}", disabled=not moves, on_click=on_click)
    if not moves:
        st.caption(chapter.words("empty-pattern"))


def read_cell(point: Point) -> tuple[int, int] | None:
    """Return query and key of a clicked cell, None where a browser sent none of this map."""
    query, key = point.get("y"), point.get("x")
    if not isinstance(query, int | float) or not isinstance(key, int | float) or not 0 <= key <= query < COUNT:
        return None
    return int(query), int(key)


def draw_pattern(
    chapter: Chapter,
    layer: int,
    letters: Sequence[str],
    outcome: Outcome,
    on_click: Callable[[Point], None] | None = None,
) -> None:
    """Draw the map of a head, and beside it the next letters that the model predicts."""
    figure = pattern_figure(outcome.maps[layer], letters, outcome.predicted, chapter.words.group("figure"))
    values: dict[str, Any] = {"layer": layer + 1, "right": outcome.right, "count": len(outcome.predicted)}
    chapter.figure("pattern", figure, bar=False, on_click=on_click, **values)
