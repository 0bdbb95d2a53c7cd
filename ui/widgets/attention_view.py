"""The attention view: every head as a thumbnail, the opened one in full, and the sentence shaded by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from ui.compute.slots import run_in_slot
from ui.text.words import current_language, load_words
from ui.widgets.component import component
from viz_core.trace import HeadsOff
from viz_core.view.flipbook import encode_flipbook, is_small
from viz_core.view.head_names import head_at, places_of
from viz_core.view.link import ViewLink, read_link, write_link
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook_file import RunSource, write_notebook
from viz_core.view.page import view_page
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import FileRequest, Request, wanted
from viz_core.view.state import Cell, ViewState, read_cell, read_message
from viz_core.view.words import words_of_shares

__all__ = ["Along", "MapGroup", "ViewState", "attention_view"]

_mount = component("attention_view")


@dataclass(frozen=True)
class Along:
    """A slider of the page that the groups go along with.

    Attributes:
        slider: the key of its widget.
        stops: makes the groups that are shown from a value of it on, by that value, in rising order.
    """

    slider: str
    stops: Mapping[int, Callable[[], Sequence[MapGroup]]]


def attention_view(
    groups: Sequence[MapGroup],
    default: ViewState | None = None,
    *,
    key: str = "maps",
    second: Sequence[MapGroup] = (),
    inputs: tuple[str, str] = ("", ""),
    beside: tuple[str, ...] = (),
    head_param: str = "head",
    pin_param: str = "pin",
    display_param: str = "look",
    run_source: Callable[[], RunSource] | None = None,
    off: HeadsOff | None = None,
    on_switch: Callable[[str, int], None] | None = None,
    on_cell: Callable[[Cell], None] | None = None,
    show_contributions: bool = False,
    along: Along | None = None,
) -> ViewState:
    """Draw the view and return what is open, pinned and how it is looked at. All of it stands in the address bar.

    Groups keep their thumbnails once computed, and a browser is sent their numbers once: cache them
    with the trace they come from, and a click costs no more than the maps it needs.

    Args:
        groups: the kinds of maps, each a tab.
        default: what is open where the address names nothing; the first head unless given.
        key: identifies this view on its page.
        second: the same kinds of maps of another input, to compare with.
        inputs: what the two inputs are, for people; needed with `second`.
        beside: kinds of maps that are shown beside each other and never subtracted.
        head_param: query parameter of the opened head ("cross.2.5": group, layer and head from 0).
        pin_param: query parameter of the pinned tokens ("q10" or "k3.k4").
        display_param: query parameter of all else ("mode-links~scale-log").
        run_source: how the maps were made, for a notebook that makes them again; none is offered without.
        off: the heads that are off, if they can be switched.
        on_switch: is told site and number of a head that the reader switches, before the page runs again.
        on_cell: is told a pair that the reader clicks, before the page runs again.
        show_contributions: whether the maps' numbers are shares of what a head adds, in place of weights.
        along: the slider that `groups` go along with: who drags it sees every stop at once, if they are small enough.

    Raises:
        ValueError: if there are no groups, or the default is not among them.
    """
    words = load_words("attention-view").sections
    view = View(
        groups, words_of_shares(words) if show_contributions else words, second, inputs, current_language(), beside
    )
    default = default or ViewState(groups[0].id, 0, 0)
    names = {"head": head_param, "pin": pin_param, "display": display_param}
    message = (st.session_state.get(key) or {}).get("view")
    state = _state(view, message, names, default, key)
    wants = _wants(message, f"{key}-ask")
    turn, known = st.session_state.get(f"{key}-taken", Taken()).turn, _field(message, "have") == view.stamp
    address = _address()
    writers: dict[FileRequest, Callable[[], bytes]] = {
        FileRequest("page"): lambda: view_page(view, state, load_words("common").title, link=address).encode()
    }
    if run_source is not None:
        made = run_source
        writers[FileRequest("notebook")] = lambda: write_notebook(view, state, default, made())

    offers = [*map(str, writers), "link"]
    said: dict[str, Any] = {"offers": offers, "switches": None if off is None else places_of(off, groups)}
    if along is not None and is_small(groups, len(along.stops)):
        said["along"], stops = along.slider, along.stops
        page = partial(encode_view, state=state, turn=-1, words=False, **said)  # whatever the reader has open stays
        writers[FileRequest("flipbook")] = lambda: encode_flipbook(
            {value: replace(view, groups=make()) for value, make in stops.items()}, page
        )

    def encode() -> bytes:
        files = {file: write() for file, write in writers.items() if file in wants}
        return encode_view(view, state, turn=turn, known=known, wants=wants, files=files, **said)

    def switched() -> None:
        head = head_at(_field(st.session_state.get(key), "switch"), groups)
        if head and on_switch:
            on_switch(*head)

    def moved() -> None:
        cell = read_cell(_field(st.session_state.get(key), "view"), groups)
        if on_cell and cell and cell.click != st.session_state.get(f"{key}-click"):
            st.session_state[f"{key}-click"] = cell.click
            on_cell(cell)

    data = run_in_slot(encode, "view")
    _mount(key=key, data=data, on_view_change=moved, on_switch_change=switched)
    return state


@dataclass(frozen=True)
class Taken:
    """The last move of the reader that was taken: its turn, and the address that was written for it."""

    turn: int = 0
    written: ViewLink | None = None


def is_newer(message: Any, fresh: bool, link: ViewLink, taken: Taken) -> bool:
    """Whether what the browser says is newer than the address that came with it.

    It is when the reader has moved. And when the browser speaks afresh, and the address is not what was written for the
    last move: then both were sent before that had arrived. A reader who goes back in the history sends another address
    as well, but no fresh message.
    """
    turn = _field(message, "turn")
    if not isinstance(turn, int):
        return False
    return turn > taken.turn or (fresh and turn == taken.turn and link != taken.written)


def _state(view: View, message: Any, names: Mapping[str, str], default: ViewState, key: str) -> ViewState:
    """Whatever moved last wins: a move of the reader that the address does not show yet, else the address."""
    link = ViewLink(**{part: st.query_params.get(name) for part, name in names.items()})
    taken: Taken = st.session_state.get(f"{key}-taken", Taken())
    fresh = _field(message, "ask") != st.session_state.get(f"{key}-ask")
    if is_newer(message, fresh, link, taken):
        state = read_message(message, view.groups, default) or default
        written = write_link(state, default)
        st.session_state[f"{key}-taken"] = Taken(message["turn"], written)
        _write_address({names[part]: value for part, value in asdict(written).items()})
        return state
    state, understood = read_link(link, view.groups, default)
    if not understood:
        st.caption(view.words["bad_link"])
    return state


def _wants(message: Any, ask_key: str) -> list[Request]:
    """What the browser asks for in this message; each is answered once."""
    ask = _field(message, "ask")
    if not isinstance(ask, str) or ask == st.session_state.get(ask_key):
        return []
    st.session_state[ask_key] = ask
    return wanted(message)


def _field(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else None


def _address() -> str:
    """Where this page opens as it is, as far as the browser says; "" where none does."""
    url = (st.context.url or "").split("?")[0]
    asked = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    if not url.startswith(("https://", "http://")):
        return ""
    return f"{url}?{asked}" if asked else url


def _write_address(link: Mapping[str, str | None]) -> None:
    """Put the state into the address; each change is an entry in the browser's history, so none without need."""
    changed = {name: value for name, value in link.items() if value != st.query_params.get(name)}
    for name in [name for name, value in changed.items() if value is None]:
        del st.query_params[name]
    st.query_params.update({name: value for name, value in changed.items() if value is not None})
