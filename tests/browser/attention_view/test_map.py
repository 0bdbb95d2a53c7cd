"""The opened map: what mouse, keys, fingers and a screen reader read of it are the library's numbers."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from tests.browser.attention_view.live_view import (
    KEYS,
    QUERIES,
    START,
    LiveView,
    colour,
    point_at_cell,
    read_tip,
    saved_npz,
    weights_of,
)
from tests.browser.page_checks import box_of
from tests.viz_core.view.attention_groups import make_group
from viz_core.trace.source import Projected
from viz_core.view.components import COMPONENTS, view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.requests import MapRequest, Pin
from viz_core.view.state import ViewState


def test_the_mouse_reads_exact_weights_and_pins_their_row(live: LiveView, cross: MapGroup) -> None:
    box = box_of(live.map)
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
    live.page.evaluate("document.activeElement.blur()")
    live.page.keyboard.press("Escape")  # it closes something else on the page
    expect(pressed).to_have_count(1)
    live.map.focus()
    live.page.keyboard.press("Escape")
    expect(pressed).to_have_count(0)


def test_keys_not_chosen_by_an_indexer_differ_from_zero_weight(page: Page) -> None:
    group = make_group(5, 5, "self", layers=1, heads=1)
    mask = torch.tensor([1, 2, 0, 3, 2])[:, None] != torch.arange(5)
    call = group.calls[0]
    assert isinstance(call.source, Projected)
    chosen = replace(call.source, mask=(mask & torch.ones(5, 5).tril().bool())[None, None], chooses=True)
    group = replace(group, calls=(replace(call, source=chosen),))
    live = LiveView(page, View([group], view_words()), ViewState("self", 0, 0))
    live.wait_until_exact()
    for row, column, is_skipped in ((2, 0, True), (4, 2, True), (0, 1, False), (4, 1, False), (0, 3, False)):
        point_at_cell(live, row, column)
        tip = live.page.locator("[data-piece=tip]").first
        (expect(tip).to_contain_text if is_skipped else expect(tip).not_to_contain_text)("not chosen")


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


def test_pieces_are_merged_to_words(live: LiveView, cross: MapGroup) -> None:
    live.option("unit", "words").click()
    saved = saved_npz(live)
    np.testing.assert_allclose(saved["weights"], cross.maps.whole(MapRequest(((0, 0),), words=True)), atol=1e-6)
    assert list(saved["queries"]) == ["Le", "chat", "noir", "dormait", "<eos>"]
    assert saved["keys"][2] == "catslept"
    expect(live.part("mapNote")).to_contain_text("rows of their pieces are averaged, columns summed")


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
    live.until(lambda: live.state.display.zoom == f"{row}.{column}.{height}.{width}")
    assert max(live.sent) < 700_000


def test_links_follow_the_token_and_the_threshold(live: LiveView, cross: MapGroup) -> None:
    live.option("mode", "links").click()
    live.option("rule", "k").click()
    live.part("least").fill("1")
    live.map.focus()
    for _ in range(3):
        live.page.keyboard.press("ArrowDown")
    expect(live.announcement).to_contain_text("noir looks")
    live.page.keyboard.press("Enter")
    drawn = re.findall(r"<(path|text) [^>]*(?:stroke|fill)=\"(#\w+)\"", live.save("svg").decode())
    assert [each[1] for each in drawn if each[0] == "path"] == ["#a34b82"] * (len(QUERIES) + 1)  # one twice: in focus
    assert {("text", "#0072b2"), ("text", "#b05207")} <= {*drawn}  # the queries' blue, the keys' orange
    live.until(lambda: (live.state.display.mode, live.state.display.links) == ("links", "k1"))


def test_links_of_512_tokens_are_bounded_and_drawn(page: Page) -> None:
    live = LiveView(page, View([make_group(512, 512, "self", layers=1, heads=1)], view_words()))
    live.wait_until_exact()
    live.option("mode", "links").click()
    live.part("least").fill("0")
    expect(live.part("mapNote")).to_contain_text("20,000 strongest")


def test_strangers_tokens_are_only_text(page: Page) -> None:
    tokens = ("<img src=x onerror=window.hit=1>", "</script>", "{value}", "\u202egnp", "\ud800", "a\nb")
    group = make_group(6, 6, "self", query_tokens=tokens, key_tokens=tokens)
    live = LiveView(page, View([group], view_words()), ViewState("self", 0, 0))
    expect(page.locator("[data-part=queryLine] .token").first).to_have_text(tokens[0])
    assert page.locator("img").count() == 0
    assert saved_npz(live)["keys"].shape == (6,)
    assert "<img" not in live.save("svg").decode()
    assert page.evaluate("window.hit") is None


def test_the_sentence_is_shaded_by_what_a_token_looks_at(live: LiveView, cross: MapGroup) -> None:
    live.page.emulate_media(reduced_motion="reduce")  # the colours are there at once
    live.part("queryLine").locator(".token").nth(2).hover()
    expected = weights_of(cross, 0, 0)[2]
    tokens = live.part("keyLine").locator(".token")
    expect(tokens.first).to_have_css("background-color", re.compile(r"rgb\("))
    shades = tokens.evaluate_all(
        "all => all.map((t) => getComputedStyle(t).backgroundColor.match(/\\d+/g).map(Number))"
    )
    np.testing.assert_allclose(shades, [colour(float(weight)) for weight in expected], atol=1)


def test_a_finger_reads_cell_after_cell_along_a_pinned_row(browser: Browser, cross: MapGroup) -> None:
    phone = browser.new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    live = LiveView(phone, View([cross], view_words()), START)
    box, cells = box_of(live.map), []
    for across in (0.5, 0.3):
        live.map.tap(position={"x": box["width"] * across, "y": box["height"] * 0.6})
        cells.append(read_tip(live))
    assert (cells[0][0], cells[0][1] == cells[1][1]) == (cells[1][0], False)
    expect(phone.locator("[data-part=queryLine] [aria-pressed=true]")).to_have_text(cells[0][0])
    phone.close()


STORE = """async (source) => {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { makeView, partOf, send, takeAnswer } = await import(address);
  const [view, sent] = [makeView({}), []];
  const moment = () => new Promise((done) => setTimeout(done, 10));
  const header = { version: 3, base: {}, stamp: "a", parts: [], missing: ["map x"] };
  takeAnswer(view.store, { header, buffer: new ArrayBuffer(0), start: 0 });
  for (const name of ["map x", "map y"]) partOf(view, name);
  Object.assign(view, { state: { layer: 1 }, setStateValue: (_, message) => sent.push(message.layer) });
  for (const layer of [1, 1, 2]) {
    view.state.layer = layer;
    send(view);
    await moment();
  }
  return [[...view.channel.wanted], sent];
}"""


def test_what_python_lacks_is_not_wanted_again_and_a_state_is_told_once(page: Page) -> None:
    source = (COMPONENTS / "attention_view" / "store.js").read_text(encoding="utf-8")
    assert page.evaluate(STORE, source) == [["map y"], [1, 2]]
