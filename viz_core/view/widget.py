"""The attention view as a widget of a notebook: the same scripts, requests and bytes as in the app, by anywidget."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import anywidget
import traitlets
from IPython.display import display
from PIL.Image import Image

from viz_core.trace import AttentionCall, Trace
from viz_core.trace.arguments import is_index
from viz_core.trace.trace import EMPTY_TRACE_HINT
from viz_core.view.components import DARK, LIGHT, read_component
from viz_core.view.grouping import Names, Tokens, check_tokens, group_calls, read_tokens, weight_calls, with_picture
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook import AttentionView, ViewHandle
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import FileRequest, wanted
from viz_core.view.save import saved_view
from viz_core.view.state import ViewState, over_picture, read_message, reopened, site_of_state
from viz_core.view.static_pictures import static_forms

_THEME = f':host {{ {LIGHT}}} :host([data-scheme="dark"]) {{ {DARK}}}'
# What the reader may save by Python's help.
_FILES: dict[Any, Callable[[View, ViewState], bytes]] = {
    FileRequest("page"): lambda view, state: saved_view(view, state, ".html"),
    FileRequest("notebook"): lambda view, state: saved_view(view, state, ".ipynb"),
}
_OFFERS = tuple(map(str, _FILES))


def _script() -> str:
    """The module that a browser runs: all scripts of the view, with its markup and style."""
    view = read_component("attention_view", "widget.js")
    content = f"<style>{_THEME}{view.style}</style>{view.markup}"
    return f"export default ({view.show})({json.dumps(content)});"


class AttentionWidget(ViewHandle, anywidget.AnyWidget):
    """Maps in a notebook cell, whose state is read and set from Python.

        shown = view(translation)
        shown.head                                   # the open head, counted from 0
        shown.site, shown.pins = "decoder.0.cross", ["q2"]
        shown.observe(print, "head")                 # traitlets: told whenever another is opened

    The numbers stay with Python, which answers as they are looked at: a notebook that is opened again shows pictures of
    the maps until its cell has run, as nbconvert and GitHub do. `save` writes a page that needs no Python.
    """

    _esm = _script()
    _pictures = traitlets.Unicode(help="The class of the pictures that stand in for the widget.").tag(sync=True)

    site = traitlets.Unicode(help="The site of the call whose head is open.")
    head = traitlets.Int(help="The open head, counted from 0.")
    # Not `Any`, which takes None before anybody is asked.
    pins: Any = traitlets.Instance(object, (), help='The pinned tokens, queries ("q3") or keys ("k0").')
    display: Any = traitlets.Instance(
        object, (), help="How the open head is looked at: a `DisplayOptions`; set by one or by its words that change."
    )

    def __init__(self, groups: Sequence[MapGroup], state: ViewState | None = None, **options: Any) -> None:
        ViewHandle.__init__(self, groups, state, **options)
        self._turn = 0  # moves of the reader and of Python that `state` takes account of
        self._have: object = None  # the base that the browser holds, once it has spoken
        anywidget.AnyWidget.__init__(self, _pictures=f"attention-{uuid.uuid4().hex}")
        self._follow(self.state)
        self.on_msg(self._receive)

    def _ipython_display_(self, **_: Any) -> None:
        """Show pictures of the maps, an output of their own, and the widget, whose script hides them once it has maps.

        As another form of one output they would lose to the stored state of a widget, which has no maps.
        """
        forms = static_forms(self.view, self.state)
        pictures = f'<div class="{self._pictures}">{forms["text/html"]}</div>'
        display({**forms, "text/html": pictures, "text/plain": repr(self)}, raw=True)
        data, metadata = self._repr_mimebundle_() or ({}, {})
        display(data, metadata=metadata, raw=True)

    def _show_state(self, state: ViewState) -> None:
        self._follow(state)
        self._turn += 1
        if self._have is not None:
            self._answer([])

    def _follow(self, state: ViewState) -> None:
        """Set the traits to the state; observers are called once all are set."""
        self.state = state
        with self.hold_trait_notifications():
            for name, value in _as_traits(self.groups, state).items():
                setattr(self, name, value)

    @traitlets.validate("site", "head", "pins", "display")
    def _is_there(self, proposal: Any) -> object:
        """Validate a trait's value and normalise it."""
        name, value = proposal["trait"].name, proposal["value"]
        return _as_traits(self.groups, reopened(self.groups, self.state, **{name: value}))[name]

    @traitlets.observe("site", "head", "pins", "display")
    def _trait_changed(self, change: Any) -> None:
        """Open what a trait was set to."""
        if _as_traits(self.groups, self.state)[change["name"]] != change["new"]:
            self.open_head(**{change["name"]: change["new"]})

    def _receive(self, _: object, message: object, __: object) -> None:
        """Handle a message of the browser: its state and its requests."""
        if not isinstance(message, Mapping):
            return
        have, turn = message.get("have"), message.get("turn")
        self._have = have or ""
        if isinstance(turn, int) and turn > self._turn:
            self._turn = turn
            state = read_message(message, self.groups, self.state)
            if state is not None:
                self._follow(state)
        self._answer(wanted(message))

    def _answer(self, wants: Sequence[Any]) -> None:
        """Send the state and the requested parts, or why they cannot be sent."""
        files, problem = {}, None
        try:
            for file, write in _FILES.items():
                if file in wants:
                    files[file] = write(self.view, self.state)
        except ValueError as error:  # the recording is too large to carry: the file is answered as missing
            problem = str(error)
        try:
            known = self._have == self.view.stamp
            data = encode_view(
                self.view, self.state, turn=self._turn, known=known, wants=wants, files=files, offers=_OFFERS
            )
        except ValueError as error:  # a recorded tensor has been changed since
            self.send({"problem": str(error)})
        else:
            self.send({"problem": problem}, [data])


def _as_traits(groups: Sequence[MapGroup], state: ViewState) -> dict[str, object]:
    """Return the state as values of the traits."""
    pins = tuple(map(str, state.pins))
    return {"site": site_of_state(groups, state), "head": state.head, "pins": pins, "display": state.display}


Opening = tuple[tuple[MapGroup, ...], ViewState]
"""Groups, and what of them is open at first."""

_RUN = "viz_core.hub.runs.run.HubRun"
# Functions that know a result. They are imported when such a result is shown: a model of Hugging Face brings much
# along, and where none has run, what it takes may not even be installed.
_OPENERS = {
    "viz_core.pretrained.translation.Translation": "viz_core.view.shipped:open_translation",
    "viz_core.pretrained.classifier.Classification": "viz_core.view.shipped:open_classification",
    _RUN: "viz_core.view.hub:open_run",
}


def show(
    what: Any,
    tokens: Tokens | None,
    keys: Tokens | None,
    row: int | None,
    language: str,
    labels: Names | None = None,
    picture: Image | None = None,
) -> ViewHandle:
    """`viz_core.view`, which says what each of these is: a widget where the extra is installed, else a frame."""
    if labels is not None:
        if not any(f"{kind.__module__}.{kind.__qualname__}" == _RUN for kind in type(what).__mro__):
            raise ValueError(f"labels: expected those of a HubRun, got a {type(what).__name__}: give tokens and keys")
        from viz_core.view.hub import relabelled

        what = relabelled(what, labels)
    groups, state = _open(what, tokens, keys, row, language)
    if picture is not None:
        groups = with_picture(groups, picture)
        state = over_picture(next(group for group in groups if group.image is not None and group.image.levels))
    if find_spec("anywidget") is None:
        return AttentionView(groups, state, language=language)
    from viz_core.view.widget import AttentionWidget  # the extra "notebook"

    return AttentionWidget(groups, state, language=language)


def _open(what: object, tokens: Tokens | None, keys: Tokens | None, row: int | None, language: str) -> Opening:
    open_run = _opener_for(what)
    if open_run is not None:
        if tokens is not None or keys is not None or row:
            raise ValueError(f"tokens, keys, row: expected none for a {type(what).__name__}, which knows its own")
        return open_run(what, language)
    is_batch, row = row is not None, 0 if row is None else row
    if isinstance(what, AttentionCall):
        calls: tuple[AttentionCall, ...] = (what,)
    else:
        calls = tuple(what.stitched()) if isinstance(what, Trace) else weight_calls(what, keys is not None, is_batch)
    if not calls:
        raise ValueError(f"what: expected attention, got a trace without any: {EMPTY_TRACE_HINT}")
    if not is_index(row):
        raise ValueError(f"row: expected a number, got {row!r}")
    row = int(row)
    names, of_keys = read_tokens("tokens", tokens, row), read_tokens("keys", keys, row)
    check_tokens(calls, names, of_keys)
    groups = group_calls(calls, names, row, of_keys)
    return groups, ViewState(groups[0].id, 0, 0)


def _opener_for(what: object) -> Callable[[object, str], Opening] | None:
    """The function for what a model made of its input; None for attention by itself."""
    for kind in type(what).__mro__:
        opener = _OPENERS.get(f"{kind.__module__}.{kind.__qualname__}")
        if opener is not None:
            module, _, name = opener.partition(":")
            found: Callable[[object, str], Opening] = getattr(import_module(module), name)
            return found
    return None
