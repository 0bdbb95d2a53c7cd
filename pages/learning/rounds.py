"""Two rounds with a model of two heads: the reader replaces one head, or sets the patterns of both."""

import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import streamlit as st

from pages.learning import runs as measured_run
from pages.learning.figures import pattern_figure
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from ui.text.head_names import layer_place
from ui.text.markdown import escape
from ui.widgets.chart import Point
from ui.widgets.query_param import in_address
from viz_core.lessons.learning import PERIOD, Outcome, Pattern, run_patterns
from viz_core.pretrained.checkpoint import load_weights
from viz_core.runtime.assets import reading
from viz_core.tasks import TASKS, TaskTransformer
from viz_core.tasks.film import TWO_HEADS
from viz_core.tasks.generating import LETTERS

COUNT = 2 * PERIOD - 1
"""Letters that the model reads; the last one is only predicted."""
OFF, TRAINED = "off", "trained"
AFTER = "after-occurrence"
NAMED = ("previous", "diagonal", "first", "uniform", AFTER)
"""Patterns with a name; the last one is `keys_after`."""


def sequence(seed: int) -> tuple[str, ...]:
    """Return different random letters, and the same letters again."""
    return tuple(random.Random(seed).sample(LETTERS, PERIOD)) * 2


def keys_after(letters: Sequence[str]) -> tuple[int, ...]:
    """Return, for each query, the key after the previous occurrence of its letter; -1 without one."""
    before = [max((j for j in range(i) if letters[j] == letters[i]), default=-2) for i in range(len(letters))]
    return tuple(j + 1 for j in before)


@cached()
def outcome(seed: int, *patterns: Pattern) -> Outcome:
    """Run the model on a sequence, with a pattern of each head."""
    letters = sequence(seed)
    keys = keys_after(letters[:COUNT])
    return run_patterns(shipped_model(), letters, [keys if what == AFTER else what for what in patterns])


@st.cache_resource(max_entries=1, show_spinner=False)
def shipped_model() -> TaskTransformer:
    """Return the model that ships; AssetError if its weights are missing or damaged."""
    model = TaskTransformer(len(TASKS[TWO_HEADS.task].tokens), TWO_HEADS.shape)
    with reading(path := measured_run.RECORDED / "two-heads.safetensors"):
        load_weights(model, path)
    return model.eval()


def score(yours: float, trained: float, without: float) -> float | None:
    """Return the share of the loss between switched off (0) and trained (1) that is saved; None where none can be."""
    return (without - yours) / (without - trained) if without > trained else None


Moves: TypeAlias = tuple[tuple[int, int], ...]
"""Query and key of each choice, in order; a later choice for a query replaces an earlier one."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_MOVES = 60  # moves in the URL, as many as can be undone


def read_moves(text: str) -> Moves | None:
    """Return the moves that digits stand for, "10" for query 1 and key 0; None if a key comes after its query."""
    if not re.fullmatch(rf"([0-9a-z]{{2}}){{0,{_MAX_MOVES}}}", text):
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
    return (*(moves if len(moves) < _MAX_MOVES else tuple(last.items())), (query, key))


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


CLICKED = "clicked"
_START = (1, PERIOD)  # the first query whose key matters, in each layer


def play_head(chapter: Chapter) -> None:
    """Let the reader choose the keys of one head; compare the loss with that of the trained head and without it."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer = chapter.controls.choice("player", (1, 2), 2) - 1
        seed = int(chapter.controls.slider("play-seed", 0, 9, 0))
    letters, name = sequence(seed), f"play-{layer + 1}"
    chapter.text("play", layer=layer + 1)

    def play(pattern: Pattern) -> Outcome:
        return outcome(seed, *((pattern, TRAINED) if layer == 0 else (TRAINED, pattern)))

    yours = play(keys_of(stored_moves(chapter, name)))
    drawn, judged = st.columns([3, 2], gap="medium")
    with drawn:
        choose_keys(chapter, name, layer, letters, yours, _START[layer])
    with judged:
        _scores(chapter, yours, play(TRAINED), play(OFF))
        if chapter.controls.toggle("reveal"):
            draw_pattern(chapter, layer, letters, play(TRAINED))


def build_a_circuit(chapter: Chapter) -> None:
    """Let the reader set the pattern of both heads; compare the loss with that of the trained ones and without them."""
    controls = chapter.controls
    chapter.text("circuit")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = [
            controls.select("first-pattern", (OFF, *NAMED, CLICKED), OFF),
            controls.select("second-pattern", (OFF, TRAINED, *NAMED, CLICKED), OFF),
        ]
        seed = int(controls.slider("circuit-seed", 0, 9, 0))
    letters, names = sequence(seed), ("circuit-1", "circuit-2")
    moves = [stored_moves(chapter, name) for name in names]
    patterns = [keys_of(own) if what == CLICKED else what for what, own in zip(chosen, moves, strict=True)]
    yours = outcome(seed, *patterns)
    _scores(chapter, yours, outcome(seed, TRAINED, TRAINED), outcome(seed, OFF, OFF))
    for layer, column in enumerate(st.columns(2, gap="medium")):
        with column:
            st.markdown(f"**{layer_place(layer + 1)}**")
            if chosen[layer] == CLICKED:
                choose_keys(chapter, names[layer], layer, letters, yours, _START[layer])
            else:
                draw_pattern(chapter, layer, letters, yours)


def _scores(chapter: Chapter, yours: Outcome, trained: Outcome, without: Outcome) -> None:
    """Draw the three losses, and the share of the gap that the reader's pattern closes."""
    rows = [chapter.words("scores.head")]
    for who, made in (("yours", yours), ("trained", trained), ("off", without)):
        right = {"right": made.right, "count": len(made.predicted)}
        rows.append(chapter.words("scores.row", who=chapter.words(f"who.{who}"), loss=f"{made.loss:.2f}", **right))
    st.markdown("\n".join(rows))
    st.caption(chapter.words("scored", first=PERIOD + 2, last=2 * PERIOD))
    share = score(yours.loss, trained.loss, without.loss)
    if share is not None:
        st.markdown(chapter.words("score", share=f"{share:.0%}"))
