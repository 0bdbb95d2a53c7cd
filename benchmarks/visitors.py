"""Real Streamlit sessions without a browser: a web socket each, the protocol of Streamlit's own front end."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import DoubleArray
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

VIEW = "attention_view"
_WITH_VALUES = "slider number_input selectbox radio multiselect button_group checkbox text_input text_area".split()
_MAX = 50 * 2**20  # bytes of a message


@dataclass
class Shown:
    """What a run of the page sent: texts and views in order, and the controls by their label."""

    views: list[bytes] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)  # ids of lines to type in
    buttons: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    sliders: dict[str, str] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)  # of every control there is
    controls: list[tuple[str, Any]] = field(default_factory=list)  # kind and message of those with values
    fragments: dict[str, str] = field(default_factory=dict)  # by the id of a control: the part that it runs again
    messages: int = 0
    size: int = 0  # of all messages, in bytes

    def without(self, fragments: Collection[str]) -> "Shown":
        """What is there when these parts begin to run again: the controls of all others."""
        left = {key: part for key, part in self.fragments.items() if part not in fragments}
        inputs, buttons, sliders = (
            {label: key for label, key in kind.items() if key in left}
            for kind in (self.inputs, self.buttons, self.sliders)
        )
        return Shown(inputs=inputs, buttons=buttons, sliders=sliders, fragments=left)

    def take(self, element: Element, fragment: str = "") -> None:
        """Count one element in, which a fragment drew if one is named."""
        kind = element.WhichOneof("type")
        if kind == "bidi_component" and element.bidi_component.component_name == VIEW:
            self.views.append(element.bidi_component.bytes)
        elif kind == "markdown":
            self.texts.append(element.markdown.body)
        elif kind == "alert":
            self.alerts.append(element.alert.body)
        elif kind == "toast":
            self.alerts.append(element.toast.body)
        elif kind == "text_input":
            self.inputs[element.text_input.label] = element.text_input.id
        elif kind == "button":
            self.buttons[element.button.label] = element.button.id
        elif kind == "slider":
            self.sliders[element.slider.label] = element.slider.id
        elif kind == "exception":
            self.failed.append(element.exception.type)
        if kind in _WITH_VALUES:
            self.controls.append((kind, getattr(element, kind)))
        if kind is not None and getattr(getattr(element, kind), "id", ""):
            self.ids.append(getattr(element, kind).id)
            self.fragments[self.ids[-1]] = fragment


class Visitor:
    """One session at a server. `shown` is what the run under way has sent so far, or the last one in all."""

    def __init__(self, socket: ClientConnection, timezone: str = "") -> None:
        """
        Args:
            timezone: as browsers send it; without one, all of a page is sent, visible or not.
        """
        self._socket, self._timezone = socket, timezone
        self._widgets: dict[str, WidgetState] = {}
        self._place = ("", "")
        self.session = ""
        self.shown = Shown()

    async def open(self, chapter: str, **parameters: str) -> Shown:
        """Follow a link to a chapter."""
        self._widgets = {}
        self._place = (chapter, urlencode(parameters))
        return await self._run()

    async def type(self, label: str, text: str) -> Shown:
        """Type into the line with this label, and press Enter. KeyError if the page has no such line."""
        key = self.shown.inputs[label]
        self._widgets[key] = WidgetState(id=key, string_value=text)
        return await self._run(key)

    async def move(self, label: str, value: float) -> Shown:
        """Move a slider with one handle. Raises KeyError as `type` does."""
        key = self.shown.sliders[label]
        self._widgets[key] = WidgetState(id=key, double_array_value=DoubleArray(data=[value]))
        return await self._run(key)

    async def click(self, label: str) -> Shown:
        """Click a button. Raises KeyError as `type` does."""
        key = self.shown.buttons[label]
        return await self._run(key, WidgetState(id=key, trigger_value=True))

    async def _run(self, control: str = "", *triggers: WidgetState) -> Shown:
        message = BackMsg()
        message.rerun_script.fragment_id = self.shown.fragments.get(control, "")
        message.rerun_script.page_name, message.rerun_script.query_string = self._place
        if self._timezone:
            message.rerun_script.context_info.timezone = self._timezone
        message.rerun_script.widget_states.widgets.extend([*self._widgets.values(), *triggers])
        await self.send(message)
        return await self.watch()

    async def send(self, message: BackMsg) -> None:
        """Send any message."""
        await self._socket.send(message.SerializeToString())

    async def watch(self) -> Shown:
        """Take what a run of the page sends until it is over."""
        begun = False
        while True:
            data = await self._socket.recv()
            if isinstance(data, str):
                continue
            self.shown.messages += 1
            self.shown.size += len(data)
            answer = ForwardMsg.FromString(data)
            kind = answer.WhichOneof("type")
            if kind == "new_session":
                # A rerun begins anew.
                parts = answer.metadata.run.fragment_ids
                self.shown = self.shown.without(parts) if parts else Shown()
                self.shown.messages, self.shown.size, begun = 1, len(data), True
                self.session = answer.new_session.initialize.session_id
            elif kind == "delta" and answer.delta.WhichOneof("type") == "new_element":
                self.shown.take(answer.delta.new_element, answer.delta.fragment_id)
            elif kind == "script_finished" and begun and answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return self.shown


@asynccontextmanager
async def visit(
    url: str,
    timeout: float = 60.0,
    timezone: str = "",
    headers: Mapping[str, str] | None = None,
    resume: str = "",
    source: str | None = None,
) -> AsyncIterator[Visitor]:
    """A new session at the server with this address; with a timezone, of a browser at the top of its pages.

    Args:
        headers: of the handshake.
        resume: id of the session that is asked for.
        source: address of this machine that the visitor comes from.
    """
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    async with asyncio.timeout(timeout):
        socket = await connect(
            address,
            subprotocols=["streamlit", *(["none", resume] if resume else [])],  # type: ignore[list-item]
            additional_headers=headers,
            local_addr=None if source is None else (source, 0),
            max_size=_MAX,
            proxy=None,
            ping_interval=None,
        )
    try:
        yield Visitor(socket, timezone)
    finally:
        await socket.close()
