"""The view under fingers, on a phone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.attention_view.live_view import START, LiveView, read_tip, saved_npz, weights_of
from tests.browser.page_checks import box_of
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.components import view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert not errors, errors


class Fingers:
    """Fingers on the opened map; places are fractions of its width and height."""

    def __init__(self, live: LiveView) -> None:
        self.live = live
        self.session = live.page.context.new_cdp_session(live.page)

    def touch(self, kind: str, *places: tuple[float, float]) -> None:
        box = box_of(self.live.map)
        x, y, width, height = (box[name] for name in ("x", "y", "width", "height"))
        points = [{"x": x + px * width, "y": y + py * height, "id": i} for i, (px, py) in enumerate(places)]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def move(self, start: Sequence[tuple[float, float]], end: Sequence[tuple[float, float]], steps: int = 6) -> None:
        self.live.map.scroll_into_view_if_needed()
        self.touch("touchStart", *start)
        for step in range(1, steps + 1):
            share = step / steps
            between = [(a + (c - a) * share, b + (d - b) * share) for (a, b), (c, d) in zip(start, end, strict=True)]
            self.touch("touchMove", *between)
        self.touch("touchEnd")
        # The map is drawn anew with the next frame; the one after it begins when that is done.
        self.live.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def zoom_of(live: LiveView) -> tuple[int, ...]:
    """As Python is told it: another choice of the reader comes with all that is so by then."""
    order = "layer" if live.state.display.sort == "entropy" else "entropy"
    live.page.get_by_label("Sort by").select_option(order)
    live.until(lambda: live.state.display.sort == order)
    return tuple(map(int, live.state.display.zoom.split(".")))


def test_two_fingers_enlarge_what_lies_between_them_and_one_moves_it(phone: Page) -> None:
    group = make_group(40, 40, "self", layers=1, heads=2)
    live = LiveView(phone, View([group], view_words()))
    fingers = Fingers(live)
    fingers.move([(0.5, 0.6), (0.6, 0.7)], [(0.3, 0.4), (0.8, 0.9)])
    row, column, rows, columns = zoom_of(live)
    assert rows < 20
    assert columns < 20
    assert row > 0
    assert column > 0
    expect(live.part("whole")).to_be_visible()
    saved = saved_npz(live)
    np.testing.assert_array_equal(saved["weights"], weights_of(group, 0, 0))  # a short map is saved whole
    fingers.move([(0.7, 0.7)], [(0.4, 0.5)])
    changed = zoom_of(live)
    assert changed[2:] == (rows, columns)
    assert changed[0] > row
    assert changed[1] > column
    assert live.state.pins == ()  # neither gesture pinned what lay under its end
    fingers.move([(0.3, 0.4), (0.8, 0.9)], [(0.5, 0.6), (0.55, 0.65)])
    expect(live.part("whole")).to_be_hidden()


def test_a_finger_reads_cell_after_cell_along_a_pinned_row(phone: Page, cross: MapGroup) -> None:
    live = LiveView(phone, View([cross], view_words()), START)
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = box_of(live.map)
    live.map.tap(position={"x": box["width"] * 0.5, "y": box["height"] * 0.6})
    first = read_tip(live)
    live.map.tap(position={"x": box["width"] * 0.3, "y": box["height"] * 0.6})
    second = read_tip(live)
    assert first[0] == second[0]
    assert first[1] != second[1]
    expect(phone.locator("[data-part=queryLine] [aria-pressed=true]")).to_have_text(first[0])
