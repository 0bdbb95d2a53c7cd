"""What the tests of the view share: its tokens, and reading what it shows and saves."""

from __future__ import annotations

import io
import re

import numpy as np
from playwright.sync_api import Locator, expect

from tests.browser.attention_view.live_view import LiveView
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

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


STOPS = {
    "viridis": "440154 482878 3e4a89 31688e 26828e 1f9e89 35b779 6dcd59 b4de2c fde725",
    "greys": "f7f7f7 e3e3e3 cbcbcb adadad 8c8c8c 6e6e6e 525252 363636 1d1d1d 000000",
}


def colour(weight: float, scale: str = "sqrt", palette: str = "viridis") -> tuple[int, int, int]:
    """The colour of a weight: where it stands on its scale, between two of ten points of the palette."""
    stops = [bytes.fromhex(stop) for stop in STOPS[palette].split()]
    grown = {"linear": weight, "sqrt": weight**0.5, "log": 1 + np.log10(max(weight, 1e-30)) / 4}[scale]
    at = round(255 * min(1.0, max(0.0, float(grown)))) / 255 * 9
    low, high = (stops[min(int(at) + step, 9)] for step in (0, 1))
    red, green, blue = (round(a + (at - int(at)) * (b - a)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def patch_place(stage: Locator, grid: tuple[int, int], row: int, column: int) -> tuple[float, float]:
    """The middle of a patch of a small picture on its stage: patches are whole pixels, the class token above."""
    width, height = stage.evaluate("stage => [stage.clientWidth, stage.clientHeight]")
    cell = int(min((min(width, 480) - 2) / grid[1], 480 / grid[0]))
    return 1 + (column + 0.5) * cell, height - 2 - cell * grid[0] + (row + 0.5) * cell
