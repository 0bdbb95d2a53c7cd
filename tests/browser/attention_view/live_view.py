"""The attention view in a browser with Python behind it but no Streamlit: quick, and every byte sent is seen."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from playwright.sync_api import Locator, Page

from tests.viz_core.view.attention_groups import read_requests
from ui.widgets.view_link import Cell, read_cell
from viz_core.view.components import read_component
from viz_core.view.page import view_page
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import FileRequest
from viz_core.view.state import ViewState, read_message

LINK = "https://atlas.example/t?head=self.0.0"
_STYLE = """
:root { --st-font: sans-serif; --st-heading-font: serif; --st-heading-font-size-2: 1.1rem; --st-base-radius: 0.6rem;
  --st-button-radius: 0.6rem; --st-text-color: #1d2125; --st-heading-color: #1d2125; --st-primary-color: #0b6e66;
  --st-background-color: #fbfaf7; --st-border-color: #dcd8cf; --st-chart-categorical-colors: #0072b2,#d55e00; }
body { margin: 1rem; }
"""
_BRIDGE = """
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const setStateValue = async (_, value) => draw(await window.askPython(JSON.stringify(value)));
const parentElement = document.getElementById("here");
const draw = (text) => show({ data: bytesOf(text), parentElement, setStateValue });
window.askPython("null").then(draw);
"""


class LiveView:
    """A view on a page; what the browser last said and what was sent to it stay readable."""

    def __init__(self, page: Page, view: View, state: ViewState | None = None) -> None:
        self.page = page
        self.view = view
        self.default = state or ViewState(view.groups[0].id, 0, 0)
        self.state = self.default
        self.sent: list[int] = []
        self.wants: list[str] = []
        self.cell: Cell | None = None  # that was clicked last
        self.file = ""  # name of the last one saved
        self._message_id: Any = None
        page.expose_function("askPython", self._answer)
        component = read_component("attention_view")
        page.set_content(
            f'<!doctype html><style>{_STYLE}{component.style}</style><main id="here">{component.markup}</main>'
            f'<script type="module">const show = {component.show};{_BRIDGE}</script>'
        )
        self.map.wait_for()
        page.wait_for_function("document.querySelector('[data-piece=stage]').dataset.exact !== undefined")

    @property
    def map(self) -> Locator:
        return self.page.get_by_role("application").first

    @property
    def announcement(self) -> Locator:
        """What a screen reader hears."""
        return self.page.locator("[data-part=live]")

    def part(self, name: str) -> Locator:
        return self.page.locator(f"[data-part={name}]")

    def head(self, layer: int, head: int) -> Locator:
        return self.page.locator(f'button.head[data-layer="{layer}"][data-head="{head}"]')

    def option(self, part: str, value: str) -> Locator:
        return self.page.locator(f'[data-part={part}] [data-value="{value}"]')

    def wait_until_exact(self) -> None:
        self.page.wait_for_function(
            "[...document.querySelectorAll('figure:not([hidden]) [data-piece=stage]')]"
            ".every((stage) => stage.dataset.exact === 'true')"
        )

    def until(self, true: Callable[[], bool]) -> None:
        """Until Python has been told: the view says what it shows once the reader pauses."""
        for _ in range(3000):
            if true():
                return
            self.page.wait_for_timeout(20)  # messages are only taken while the page is waited for
        raise AssertionError(f"told only {self.state}, and sent {self.sent}")

    def save(self, kind: str) -> bytes:
        """The file that one of the entries of "Save" gives."""
        self.part("exports").locator("summary").click()
        with self.page.expect_download() as download:
            self.page.locator(f"[data-export={kind}]").click()
        self.file = download.value.suggested_filename
        return download.value.path().read_bytes()

    def _answer(self, text: str) -> str:
        message = json.loads(text)
        known, wants, turn = False, [], 0
        if isinstance(message, Mapping):
            self.state = read_message(message, self.view.groups, self.default) or self.default
            self.cell = read_cell(message, self.view.groups)
            known, turn = message["have"] == self.view.stamp, message["turn"]
            if message["id"] != self._message_id:
                self._message_id, wants = message["id"], message["wants"]
        self.wants += wants
        files = {FileRequest("page"): view_page(self.view, self.state, link=LINK).encode()} if "page" in wants else {}
        offers = ("page", "link")
        data = encode_view(
            self.view, self.state, turn=turn, known=known, wants=read_requests(*wants), files=files, offers=offers
        )
        self.sent.append(len(data))
        return base64.b64encode(data).decode("ascii")
