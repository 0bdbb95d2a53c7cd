"""The attention view: every head as a thumbnail, the open one in full, and the sentence shaded by it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from ui.compute.slots import run_in_slot
from ui.text.head_names import head_at, places_of
from ui.text.words import current_language, load_words
from ui.widgets.component import component
from ui.widgets.view_link import Cell, ViewLink, read_cell, read_link, write_link
from viz_core.maps.contributions import ContributionKind
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import FileRequest, ViewRequest, wanted
from viz_core.view.save import RunSource, saved_view
from viz_core.view.state import DisplayOptions, ViewState, read_message

__all__ = ["MapGroup", "ViewState", "attention_view"]

_mount = component("attention_view")
# What a map's numbers are called where they are not weights, and the words that name them.
_QUANTITIES = {"carried": "share", "lengths": "length"}
_WEIGHT_WORDS = ("weight", "bar_weight")


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
    contribution_kind: ContributionKind = "",
    folded: bool = False,
) -> ViewState:
    """Draw the view; return the open head, the pinned tokens and the options, all of which the URL holds.

    Groups cache their thumbnails, and their numbers are sent to a browser once: cache the groups with the trace they
    come from, and a click costs no more than the maps it needs.

    Args:
        groups: the kinds of maps, each a tab.
        default: what is open if the URL names nothing; the clearest head of the first kind unless given.
        key: identifies this view on its page.
        second: the same kinds of maps of another input, to compare with.
        inputs: names of the two inputs; needed with `second`.
        beside: kinds of maps that are shown side by side and never subtracted.
        head_param: query parameter of the open head ("cross.2.5": group, layer and head from 0).
        pin_param: query parameter of the pinned tokens ("q10" or "k3.k4").
        display_param: query parameter of all other options ("mode-links~scale-log").
        run_source: how the maps were computed, for a notebook that computes them again; without it none is offered.
        off: the heads that are off, if heads can be switched.
        on_switch: receives site and number of a head that the reader switches, before the page reruns.
        on_cell: receives a cell that the reader clicks, before the page reruns.
        contribution_kind: whether the maps hold what a head adds instead of weights, as shares or as lengths.
            Lengths of two inputs have scales of their own, so they are never subtracted.
        folded: whether most controls wait behind "More" until one of them is used.

    Raises:
        ValueError: if there are no groups, or the default is not among them.
    """
    words = load_words("attention-view").sections
    if contribution_kind:
        quantity = _QUANTITIES[contribution_kind]
        words = {**words, **{name: words[name.replace("weight", quantity)] for name in _WEIGHT_WORDS}}
    if contribution_kind == "lengths":
        beside = tuple(group.id for group in groups) if second else ()
    view = View(groups, words, second, inputs, current_language(), beside)
    default = default or ViewState(groups[0].id, *(groups[0].clearest or (0, 0)))
    names = {"head": head_param, "pin": pin_param, "display": display_param}
    message = (st.session_state.get(key) or {}).get("view")
    state = _state(view, message, names, default, key)
    requests = _new_requests(message, f"{key}-message")
    turn, known = st.session_state.get(f"{key}-last-action", LastAction()).turn, _field(message, "have") == view.stamp
    url = _page_url()
    writers: dict[FileRequest, Callable[[], bytes]] = {
        FileRequest("page"): lambda: saved_view(view, state, ".html", title=load_words("common").title, link=url)
    }
    if run_source is not None:
        make_source = run_source
        writers[FileRequest("notebook")] = lambda: saved_view(
            view, state, ".ipynb", run_source=make_source(), default=default
        )

    offers = [*map(str, writers), "link"]
    header: dict[str, Any] = {
        "folded": default.display.changes_from(DisplayOptions()) if folded else None,
        "offers": offers,
        "switches": None if off is None else places_of(off, groups),
    }
    if requests:  # Streamlit does not pass on an answer equal to the last one, and a file may be requested twice
        header["message_id"] = _field(message, "id")

    def encode() -> bytes:
        files = {file: write() for file, write in writers.items() if file in requests}
        return encode_view(view, state, turn=turn, known=known, wants=requests, files=files, **header)

    def switched() -> None:
        head = head_at(_field(st.session_state.get(key), "switch"), groups)
        if head and on_switch:
            on_switch(*head)

    def clicked() -> None:
        cell = read_cell(_field(st.session_state.get(key), "view"), groups)
        if on_cell and cell and cell.click != st.session_state.get(f"{key}-click"):
            st.session_state[f"{key}-click"] = cell.click
            on_cell(cell)

    data = run_in_slot(encode, "view")
    _mount(key=key, data=data, on_view_change=clicked, on_switch_change=switched)
    return state


@dataclass(frozen=True)
class LastAction:
    """The reader's last action that a run has applied: its turn, and the link that was written to the URL."""

    turn: int = 0
    written: ViewLink | None = None


def is_newer(message: Any, fresh: bool, link: ViewLink, last: LastAction) -> bool:
    """Whether the browser's message is newer than the URL that came with it.

    It is if the reader has acted since. It also is if the message is fresh and the URL is not the one written for the
    last action: then both were sent before that URL had arrived. Going back in the history brings another URL, too, but
    no fresh message.
    """
    turn = _field(message, "turn")
    if not isinstance(turn, int):
        return False
    return turn > last.turn or (fresh and turn == last.turn and link != last.written)


def _state(view: View, message: Any, names: Mapping[str, str], default: ViewState, key: str) -> ViewState:
    """Return what was set last: by an action that the URL does not hold yet, else by the URL."""
    link = ViewLink(**{part: st.query_params.get(name) for part, name in names.items()})
    last: LastAction = st.session_state.get(f"{key}-last-action", LastAction())
    fresh = _field(message, "id") != st.session_state.get(f"{key}-message")
    if is_newer(message, fresh, link, last):
        state = read_message(message, view.groups, default) or default
        written = write_link(state, default)
        st.session_state[f"{key}-last-action"] = LastAction(message["turn"], written)
        _write_url({names[part]: value for part, value in asdict(written).items()})
        return state
    state, understood = read_link(link, view.groups, default)
    if not understood:
        st.caption(view.words["bad_link"])
    return state


def _new_requests(message: Any, id_key: str) -> list[ViewRequest]:
    """Return what the browser requests in this message; each message is answered once."""
    message_id = _field(message, "id")
    if not isinstance(message_id, str) or message_id == st.session_state.get(id_key):
        return []
    st.session_state[id_key] = message_id
    return wanted(message)


def _field(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else None


def _page_url() -> str:
    """Return the URL of this page in its present state; "" without a browser."""
    url = (st.context.url or "").split("?")[0]
    query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    if not url.startswith(("https://", "http://")):
        return ""
    return f"{url}?{query}" if query else url


def _write_url(link: Mapping[str, str | None]) -> None:
    """Write the state to the URL, only where it changed: each change is an entry in the browser's history."""
    changed = {name: value for name, value in link.items() if value != st.query_params.get(name)}
    for name in [name for name, value in changed.items() if value is None]:
        del st.query_params[name]
    st.query_params.update({name: value for name, value in changed.items() if value is not None})
