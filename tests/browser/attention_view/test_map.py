"""The opened map: what mouse, keys and a screen reader read of it are the numbers of the library."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.attention_view.live_view import LiveView
from tests.browser.attention_view.reading import (
    KEYS,
    QUERIES,
    point_at_cell,
    read_tip,
    saved_npz,
    weights_of,
)
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.requests import MapRequest, Pin
from viz_core.view.words import view_words


def test_the_mouse_reads_exact_weights_and_pins_their_row(live: LiveView, cross: MapGroup) -> None:
    box = live.map.bounding_box()
    assert box
    live.map.hover(position={"x": box["width"] * 0.5, "y": box["height"] * 0.6})
    query, key, weight = read_tip(live)
    row, column = QUERIES.index(query), KEYS.index(key)
    assert weight == pytest.approx(weights_of(cross, 0, 0)[row, column], abs=0.0051)
    live.map.click(position={"x": box["width"] * 0.5, "y": box["height"] * 0.6})
    pressed = live.page.locator("[data-part=queryLine] [aria-pressed=true]")
    expect(pressed).to_have_text(query)
    live.until(lambda: live.state.pins == (Pin("query", row),))
    assert live.cell is not None
    assert (live.cell.group, live.cell.query, live.cell.key) == ("cross", row, column)
    live.page.keyboard.press("Escape")
    expect(pressed).to_have_count(0)


def test_arrows_move_and_brackets_step_through_heads(live: LiveView, cross: MapGroup) -> None:
    point_at_cell(live, 2, 3)
    assert read_tip(live)[:2] == ("noir", "slept")
    live.page.keyboard.press("]")
    expect(live.announcement).to_contain_text("Layer 1, head 2")
    assert read_tip(live)[2] == pytest.approx(weights_of(cross, 0, 1)[2, 3], abs=0.0051)
    live.page.keyboard.press("[")
    live.page.keyboard.press("[")
    expect(live.announcement).to_contain_text("Layer 2, head 3")  # round and round
    live.until(lambda: (live.state.layer, live.state.head) == (1, 2))
    live.page.evaluate("document.activeElement.blur()")
    live.page.keyboard.press("[")  # wherever the page has focus
    live.until(lambda: (live.state.layer, live.state.head) == (1, 1))
    live.page.evaluate("document.body.append(document.createElement('textarea'))")
    live.page.locator("textarea").press("]")  # but where someone types
    expect(live.page.locator("textarea")).to_have_value("]")
    expect(live.part("printName")).to_have_text("Layer 2, head 2")


def test_a_screen_reader_hears_the_map_in_a_sentence(live: LiveView, cross: MapGroup) -> None:
    live.head(1, 1).click()
    weights = weights_of(cross, 1, 1)
    row, column = divmod(int(weights.argmax()), len(KEYS))
    expect(live.announcement).to_contain_text(
        f"6 queries, 7 keys; the strongest pair is {QUERIES[row]} → {KEYS[column]}"
    )
    assert "French attending to English" in (live.map.get_attribute("aria-label") or "")


def test_pieces_are_merged_to_words(live: LiveView, cross: MapGroup) -> None:
    live.option("unit", "words").click()
    saved = saved_npz(live)
    np.testing.assert_allclose(saved["weights"], cross.maps.whole(MapRequest(((0, 0),), words=True)), atol=1e-6)
    assert list(saved["queries"]) == ["Le", "chat", "noir", "dormait", "<eos>"]
    assert saved["keys"][2] == "catslept"
    expect(live.part("mapNote")).to_contain_text("rows of their pieces are averaged, columns summed")


def test_a_box_drawn_by_the_mouse_is_enlarged_and_a_double_click_shows_all(live: LiveView) -> None:
    box = live.map.bounding_box()
    assert box
    live.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5)
    live.page.mouse.down()
    live.page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.9, steps=5)
    live.page.mouse.up()
    expect(live.part("whole")).to_be_visible()
    live.map.dblclick(position={"x": box["width"] * 0.5, "y": box["height"] * 0.5})
    expect(live.part("whole")).to_be_hidden()


def test_zooming_a_long_input_brings_exact_tiles(page: Page) -> None:
    group = make_group(1000, 700, "self", layers=2, heads=2)
    live = LiveView(page, View([group], view_words()))
    expect(live.map).to_have_attribute("data-exact", "false")
    expect(live.part("mapNote")).to_contain_text("Long input")
    assert all(want.startswith("tile") and " 0 0 " not in want for want in live.wants)
    live.map.focus()
    for _ in range(3):
        page.keyboard.press("+")
    live.wait_until_exact()
    assert any("tile 0.self:0.0:mean:tokens 0 0" in want for want in live.wants)
    saved = saved_npz(live)
    (row, column), weights = saved["first"], saved["weights"]
    height, width = weights.shape
    expected = weights_of(group, 0, 0)[row : row + height, column : column + width]
    np.testing.assert_array_equal(weights, expected)
    assert list(saved["keys"][:2]) == [f"k{column}", f"k{column + 1}"]
    live.until(lambda: live.state.display.zoom == f"{row}.{column}.{height}.{width}")
    assert max(live.sent) < 700_000
