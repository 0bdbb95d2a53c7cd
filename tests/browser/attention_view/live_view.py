"""The attention view in a browser with Python behind it but no Streamlit: quick, and every byte sent is seen."""

import base64
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from playwright.sync_api import Locator, Page, expect

from tests.viz_core.view.attention_groups import read_requests
from ui.widgets.view_link import Cell, read_cell
from viz_core.view.components import read_component
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import FileRequest
from viz_core.view.save import saved_view
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
        files = {FileRequest("page"): saved_view(self.view, self.state, ".html", link=LINK)} if "page" in wants else {}
        offers = ("page", "link")
        data = encode_view(
            self.view, self.state, turn=turn, known=known, wants=read_requests(*wants), files=files, offers=offers
        )
        self.sent.append(len(data))
        return base64.b64encode(data).decode("ascii")


QUERIES = ("Le", "chat", "noir", "dor", "mait", "<eos>")
KEYS = ("The", "black", "cat", "slept", "=1+1", 'a "b", c', "</s>")
TEXT = "The black cat slept =1+1 & <b>"
START = ViewState("cross", 0, 0)


def weights_of(group: MapGroup, layer: int, head: int) -> np.ndarray:
    return group.calls[layer].weights(head=head)[0].numpy()


def read_tip(live: LiveView) -> tuple[str, str, float]:
    """Query, key and weight of the tooltip "noir → cat 0.71" or "noir → cat 7.1 × 10⁻⁵"."""
    tip = live.page.locator("[data-piece=tip]").first
    expect(tip).to_be_visible()  # Chromium hands a move of the mouse over with the next frame
    text = tip.inner_text().replace("\n", " ")
    found = re.match(r"(.+) → (.+?)\s+[\d.]+(?: × .+)?$", text)
    assert found, text
    return found[1], found[2], weight_in(text)


def weight_in(text: str) -> float:
    """The weight at the end of a text, "0.71" or "7.1 × 10⁻⁵"."""
    found = re.search(r"([\d.]+)(?: × 10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+))?$", text.strip())
    assert found, text
    power = int("0" + (found[2] or "").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
    return float(found[1]) / 10**power


def saved_npz(live: LiveView) -> dict[str, np.ndarray]:
    return dict(np.load(io.BytesIO(live.save("npz"))))


def point_at_cell(live: LiveView, row: int, column: int) -> None:
    """With the arrow keys, so that no test depends on where a cell is drawn."""
    live.map.focus()
    for key, presses in (("ArrowDown", row + 1), ("ArrowRight", column)):
        for _ in range(presses):
            live.page.keyboard.press(key)  # the first press shows the first cell


STOPS = "440154 482878 3e4a89 31688e 26828e 1f9e89 35b779 6dcd59 b4de2c fde725"  # of viridis


def colour(weight: float, scale: str = "sqrt") -> tuple[int, int, int]:
    """The colour of a weight: where it stands on its scale, between two of ten points of the palette."""
    stops = [bytes.fromhex(stop) for stop in STOPS.split()]
    grown = {"linear": weight, "sqrt": weight**0.5}[scale]
    at = round(255 * min(1.0, max(0.0, float(grown)))) / 255 * 9
    low, high = (stops[min(int(at) + step, 9)] for step in (0, 1))
    red, green, blue = (round(a + (at - int(at)) * (b - a)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def patch_place(stage: Locator, grid: tuple[int, int], row: int, column: int) -> tuple[float, float]:
    """The middle of a patch of a small picture on its stage: patches are whole pixels, the class token above."""
    width, height = stage.evaluate("stage => [stage.clientWidth, stage.clientHeight]")
    cell = int(min((min(width, 480) - 2) / grid[1], 480 / grid[0]))
    return 1 + (column + 0.5) * cell, height - 2 - cell * grid[0] + (row + 0.5) * cell
