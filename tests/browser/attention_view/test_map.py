"""The opened map: what mouse, keys, fingers and a screen reader read of it are the library's numbers."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
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
    painted = live.page.evaluate(
        """() => { const canvas = document.querySelector('[data-piece=ground]');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) count += data[i] === 138 && data[i + 1] === 144 && data[i + 2] === 148;
        const grey = count / (data.length / 4);
        return grey; }"""
    )
    assert 0.02 < painted < 0.12, "three of 25 cells are grey"


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
    box = box_of(live.map)
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


def test_links_follow_the_token_and_the_threshold(live: LiveView, cross: MapGroup) -> None:
    live.option("mode", "links").click()
    live.option("rule", "k").click()
    live.part("least").fill("1")
    live.map.focus()
    for _ in range(3):
        live.page.keyboard.press("ArrowDown")
    expect(live.announcement).to_contain_text("noir looks")
    live.page.keyboard.press("Enter")
    paths = re.findall(r"<path [^>]*d=", live.save("svg").decode())
    assert len(paths) == len(QUERIES) + 1  # the strongest of each query; the one in focus twice
    live.until(lambda: (live.state.display.mode, live.state.display.links) == ("links", "k1"))


def test_links_of_512_tokens_are_bounded_and_drawn(page: Page) -> None:
    live = LiveView(page, View([make_group(512, 512, "self", layers=1, heads=1)], view_words()))
    live.wait_until_exact()
    live.option("mode", "links").click()
    live.part("least").fill("0")
    expect(live.part("mapNote")).to_contain_text("20,000 strongest")


def test_several_heads_are_drawn_in_colours_of_their_own(live: LiveView, cross: MapGroup) -> None:
    live.option("heads", "layer").click()
    live.option("mode", "links").click()
    live.part("least").fill("0.3")
    strokes = Counter(re.findall(r"<path [^>]*stroke=\"([^\"]+)\"", live.save("svg").decode()))
    counts = [int((weights_of(cross, 0, head) >= 0.3).sum()) for head in range(3)]
    assert sorted(strokes.values()) == sorted(counts)
    expect(live.part("headLegend").locator(".key-of-head")).to_have_text(
        [f"Layer 1, head {head}" for head in (1, 2, 3)]
    )


def test_the_mouse_on_a_token_keeps_only_its_links(live: LiveView, cross: MapGroup) -> None:
    live.option("mode", "links").click()
    live.part("least").fill("0")
    live.part("keyLine").locator(".token").nth(1).hover()
    expect(live.page.locator("[data-piece=ground]").first).to_have_css("opacity", "0.13")
    best = int(weights_of(cross, 0, 0)[:, 1].argmax())
    expect(live.part("sentenceNote")).to_contain_text(QUERIES[best])


def test_several_pinned_words_are_read_together(live: LiveView, cross: MapGroup) -> None:
    live.page.locator('.token[data-axis="query"][data-index="1"]').click()
    live.page.locator('.token[data-axis="query"][data-index="3"]').click(modifiers=["Shift"])
    live.page.mouse.move(2, 2)
    weights = weights_of(cross, 0, 0)[[1, 3]]
    for fold, values in (("mean", weights.mean(axis=0)), ("sum", weights.sum(axis=0))):
        live.option("fold", fold).click()
        live.page.mouse.move(2, 2)
        start = "On average" if fold == "mean" else "Together"
        expect(live.part("sentenceNote")).to_contain_text(
            f"{start}, these 2 look most at {KEYS[int(values.argmax())]}, {values.max():.2f}"
        )
    live.until(lambda: live.state.display.fold == "sum")
    assert live.state.pins == (Pin("query", 1), Pin("query", 3))


def test_strangers_tokens_are_only_text(page: Page) -> None:
    tokens = ("<img src=x onerror=window.hit=1>", "</script>", "{value}", "\u202egnp", "\ud800", "a\nb")
    group = make_group(6, 6, "self", query_tokens=tokens, key_tokens=tokens)
    live = LiveView(page, View([group], view_words()), ViewState("self", 0, 0))
    expect(page.locator("[data-part=queryLine] .token").first).to_have_text(tokens[0])
    assert page.locator("img").count() == 0
    assert saved_npz(live)["keys"].shape == (6,)
    assert "<img" not in live.save("svg").decode()
    assert page.evaluate("window.hit") is None


@pytest.mark.parametrize("axis", ["query", "key"])
def test_the_sentence_is_shaded_by_what_a_token_looks_at(live: LiveView, cross: MapGroup, axis: str) -> None:
    live.page.emulate_media(reduced_motion="reduce")  # the colours are there at once
    own, far = ("queryLine", "keyLine") if axis == "query" else ("keyLine", "queryLine")
    live.part(own).locator(".token").nth(2).hover()
    weights = weights_of(cross, 0, 0)
    expected = weights[2] if axis == "query" else weights[:, 2]
    tokens = live.part(far).locator(".token")
    expect(tokens.first).to_have_css("background-color", re.compile(r"rgb\("))
    shades = tokens.evaluate_all(
        "all => all.map((t) => getComputedStyle(t).backgroundColor.match(/\\d+/g).map(Number))"
    )
    np.testing.assert_allclose(shades, [colour(float(weight)) for weight in expected], atol=1)


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
