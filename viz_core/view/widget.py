"""The attention view as a widget of a notebook: the same scripts, requests and bytes as in the app, by anywidget."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anywidget
import traitlets
from IPython.display import display

from viz_core.view.components import DARK, LIGHT, read_component
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook import ViewHandle
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import FileRequest, wanted
from viz_core.view.save import saved_view
from viz_core.view.state import ViewState, read_message, reopened, site_of_state
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
