"""The attention view, gesture by gesture: what is shown, said, asked for and saved equals the library's numbers."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.browser.live_view import LiveView
from tests.viz_core.figures.attention_groups import make_group
from viz_core.analysis import combine_heads
from viz_core.figures.attention_payload import View
from viz_core.figures.map_group import MapGroup
from viz_core.figures.map_part import MapName, whole_map
from viz_core.figures.view_state import Look, Pin, ViewState
from viz_core.figures.view_words import view_words

QUERIES = ("Le", "chat", "noir", "dor", "mait", "<eos>")
KEYS = ("The", "black", "cat", "slept", "=1+1", 'a "b", c', "</s>")
START = ViewState("cross", 0, 0)


@pytest.fixture(scope="module")
def cross() -> MapGroup:
    words = {"query_words": (0, 1, 2, 3, 3, 4), "key_words": (0, 1, 2, 2, 3, 4, 5)}
    return make_group(6, 7, query_tokens=QUERIES, key_tokens=KEYS, **words)


@pytest.fixture
def live(page: Page, cross: MapGroup) -> LiveView:
    return LiveView(page, View([make_group(5, 5, "self"), cross], view_words()), START)


def weights_of(group: MapGroup, layer: int, head: int) -> np.ndarray:
    return group.calls[layer].weights(head=head)[0].numpy()


def read_tip(live: LiveView) -> tuple[str, str, float]:
    """Query, key and weight of the tooltip "noir → cat 0.71" or "noir → cat 7.1 × 10⁻⁵"."""
    tip = live.page.locator("[data-piece=tip]").first
    expect(tip).to_be_visible()  # Chromium hands a move of the mouse over with the next frame
    text = tip.inner_text().replace("\n", " ")
    found = re.fullmatch(r"(.+) → (.+?)\s+([\d.]+)(?: × 10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    assert found, text
    power = int("0" + (found[4] or "").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
    return found[1], found[2], float(found[3]) / 10**power


def saved_npz(live: LiveView) -> dict[str, np.ndarray]:
    return dict(np.load(io.BytesIO(live.save("npz"))))


def point_at_cell(live: LiveView, row: int, column: int) -> None:
    """With the arrow keys, so that no test depends on where a cell is drawn."""
    live.map.focus()
    for key, presses in (("ArrowDown", row + 1), ("ArrowRight", column)):
        for _ in range(presses):
            live.page.keyboard.press(key)  # the first press shows the first cell


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
    live.page.wait_for_timeout(300)
    assert live.state.pins == (Pin("query", row),)
    live.page.keyboard.press("Escape")
    expect(pressed).to_have_count(0)


def test_arrows_move_and_brackets_step_through_heads(live: LiveView, cross: MapGroup) -> None:
    point_at_cell(live, 2, 3)
    assert read_tip(live)[:2] == ("noir", "slept")
    live.page.keyboard.press("]")
    expect(live.said).to_contain_text("Layer 1, head 2")
    assert read_tip(live)[2] == pytest.approx(weights_of(cross, 0, 1)[2, 3], abs=0.0051)
    live.page.keyboard.press("[")
    live.page.keyboard.press("[")
    expect(live.said).to_contain_text("Layer 2, head 3")  # round and round
    live.page.wait_for_timeout(400)
    assert (live.state.layer, live.state.head) == (1, 2)


def test_a_screen_reader_hears_the_map_in_a_sentence(live: LiveView, cross: MapGroup) -> None:
    live.head(1, 1).click()
    weights = weights_of(cross, 1, 1)
    row, column = divmod(int(weights.argmax()), len(KEYS))
    expect(live.said).to_contain_text(f"6 queries, 7 keys; the strongest pair is {QUERIES[row]} → {KEYS[column]}")
    assert "French looking at English" in (live.map.get_attribute("aria-label") or "")


def test_another_head_is_drawn_from_what_is_here(live: LiveView) -> None:
    live.page.wait_for_timeout(200)
    first = live.sent[0]
    live.head(1, 2).click()
    live.page.wait_for_timeout(400)
    assert live.wants == []
    assert len(live.sent) == 2
    assert live.sent[1] < 700 < first


def test_fingerprints_are_read_on_hover(live: LiveView, cross: MapGroup) -> None:
    live.head(1, 2).hover()
    print_ = cross.picture(1).fingerprints[2]
    expect(live.part("printName")).to_have_text("Layer 2, head 3")
    line = live.page.locator("[data-measure=alignment]")
    expect(line.locator("dd")).to_have_text(f"{print_.alignment:.2f} bits")
    above = sum(other.alignment > print_.alignment for layer in range(2) for other in cross.picture(layer).fingerprints)
    expect(line.locator(".rank")).to_have_text(f"{above + 1} of 6")
    expect(live.page.locator("[data-measure]")).to_have_count(4)  # no diagonal between two sequences


def test_the_grid_is_sorted_and_filtered_by_fingerprint(live: LiveView, cross: MapGroup) -> None:
    live.page.get_by_label("Sort by").select_option("entropy")
    prints = {(layer, head): cross.picture(layer).fingerprints[head].entropy for layer in range(2) for head in range(3)}
    expected = sorted(prints, key=lambda head: -prints[head])
    buttons = live.page.locator("button.head")
    shown = buttons.evaluate_all("all => all.map((b) => [Number(b.dataset.layer), Number(b.dataset.head)])")
    assert [tuple(head) for head in shown] == expected

    middle = (prints[expected[2]] + prints[expected[3]]) / 2
    live.map.focus()
    live.page.keyboard.press("/")
    expect(live.part("filter")).to_be_focused()
    live.page.keyboard.type(f"entr > {middle:.3f}")
    expect(buttons).to_have_count(3)
    expect(live.part("gridNote")).to_have_text("3 of 6 heads.")
    live.part("filter").fill("nonsense")
    expect(live.part("filter")).to_have_attribute("aria-invalid", "true")
    expect(buttons).to_have_count(6)


@pytest.mark.parametrize("how", ["mean", "max"])
def test_heads_are_combined_as_the_library_does(live: LiveView, cross: MapGroup, how: str) -> None:
    live.option("heads", "layer").click()
    live.option("how", how).click()
    expected = combine_heads(cross.calls[0].weights()[0], how)  # type: ignore[arg-type]
    np.testing.assert_allclose(saved_npz(live)["weights"], expected, atol=1e-7)


def test_chosen_heads_are_combined(live: LiveView, cross: MapGroup) -> None:
    live.head(1, 2).click(modifiers=["Shift"])
    live.page.wait_for_timeout(300)
    assert live.state.look.heads == "0.0_1.2"
    expected = (weights_of(cross, 0, 0) + weights_of(cross, 1, 2)) / 2
    np.testing.assert_allclose(saved_npz(live)["weights"], expected, atol=1e-7)


def test_pieces_are_merged_to_words(live: LiveView, cross: MapGroup) -> None:
    live.option("unit", "words").click()
    saved = saved_npz(live)
    np.testing.assert_allclose(
        saved["weights"], whole_map(cross, MapName(0, "cross", ((0, 0),), words=True)), atol=1e-6
    )
    assert list(saved["queries"]) == ["Le", "chat", "noir", "dormait", "<eos>"]
    assert saved["keys"][2] == "catslept"
    expect(live.part("mapNote")).to_contain_text("the rows of their pieces are averaged, the columns summed")


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
    live.page.wait_for_timeout(300)
    assert live.state.pins == (Pin("query", 1), Pin("query", 3))
    assert live.state.look.fold == "sum"


def test_two_heads_stand_side_by_side_and_as_a_signed_difference(live: LiveView, cross: MapGroup) -> None:
    live.option("compare", "side").click()
    expect(live.page.get_by_role("application")).to_have_count(2)
    live.head(1, 1).click()  # the second head is being chosen
    expect(live.page.locator("figcaption").nth(1)).to_have_text("Layer 2, head 2")
    live.option("compare", "difference").click()
    expect(live.page.get_by_role("application")).to_have_count(1)
    difference = weights_of(cross, 0, 0) - weights_of(cross, 1, 1)
    np.testing.assert_allclose(saved_npz(live)["weights"], difference, atol=1e-7)
    column = int(np.abs(difference[2]).argmax())
    point_at_cell(live, 2, column)
    expect(live.said).to_contain_text(f"{QUERIES[2]} → {KEYS[column]} differs by")


def test_two_inputs_are_compared(page: Page, cross: MapGroup) -> None:
    second = (make_group(4, 4, "self"), make_group(4, 5, query_tokens=tuple("abcd"), key_tokens=tuple("vwxyz")))
    live = LiveView(page, View([make_group(5, 5, "self"), cross], view_words(), second, ("one", "two")), START)
    live.option("compare", "side").click()
    live.wait_until_exact()
    assert live.wants == ["map 1.cross:0.0:mean:tokens"]
    expect(page.locator("figcaption").nth(1)).to_have_text("Layer 1, head 1: two")
    live.option("compare", "difference").click()
    expect(live.part("mapNote")).to_contain_text("not equally large")


def test_links_follow_the_token_and_the_threshold(live: LiveView, cross: MapGroup) -> None:
    live.option("mode", "links").click()
    live.option("rule", "k").click()
    live.part("least").fill("1")
    live.map.focus()
    for _ in range(3):
        live.page.keyboard.press("ArrowDown")
    expect(live.said).to_contain_text("noir looks")
    live.page.keyboard.press("Enter")
    paths = re.findall(r"<path [^>]*d=", live.save("svg").decode())
    assert len(paths) == len(QUERIES) + 1  # the strongest of each query; the one in focus twice
    live.page.wait_for_timeout(400)
    assert (live.state.look.mode, live.state.look.links) == ("links", "k1")


def test_links_of_512_tokens_are_bounded_and_drawn(page: Page) -> None:
    live = LiveView(page, View([make_group(512, 512, "self", layers=1, heads=1)], view_words()))
    live.wait_until_exact()
    live.option("mode", "links").click()
    live.part("least").fill("0")
    expect(live.part("mapNote")).to_contain_text("20,000 strongest")


def test_zooming_a_long_input_brings_exact_tiles(page: Page) -> None:
    group = make_group(1000, 700, "self", layers=2, heads=2)
    live = LiveView(page, View([group], view_words()))
    page.wait_for_timeout(500)
    assert live.map.get_attribute("data-exact") == "false"
    expect(live.part("mapNote")).to_contain_text("A long input")
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
    page.wait_for_timeout(700)
    assert live.state.look.zoom == f"{row}.{column}.{height}.{width}"
    assert max(live.sent) < 700_000


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


def test_numbers_and_pictures_are_saved(live: LiveView, cross: MapGroup) -> None:
    weights = weights_of(cross, 0, 0)
    table = list(csv.reader(io.StringIO(live.save("csv").decode())))
    assert table[0] == ["", *KEYS]
    assert [row[0] for row in table[1:]] == list(QUERIES)
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float32), weights)

    saved = saved_npz(live)
    np.testing.assert_array_equal(saved["weights"], weights)
    assert (tuple(saved["queries"]), tuple(saved["keys"])) == (QUERIES, KEYS)
    assert (list(saved["first"]), list(saved["units_per_cell"])) == ([0, 0], [1, 1])

    svg = live.save("svg").decode()
    assert svg.count("<rect ") == 1 + weights.size  # paper and cells
    assert "<title>Layer 1, head 1</title>" in svg
    assert "&#60;eos&#62;" in svg
    picture = Image.open(io.BytesIO(live.save("png")))
    colours = picture.convert("RGB").getcolors(10**6)
    assert colours is not None
    strongest = viridis(float(weights.max()))
    assert any(max(abs(a - b) for a, b in zip(colour, strongest, strict=True)) <= 1 for _, colour in colours)


def viridis(weight: float) -> tuple[int, int, int]:
    """The colour of a weight: the root of it, between two of ten points of viridis."""
    stops = ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6dcd59", "b4de2c", "fde725"]
    at = round(weight**0.5 * 255) / 255 * 9
    low, high = (bytes.fromhex(stops[min(int(at) + step, 9)]) for step in (0, 1))
    return tuple(round(a + (at - int(at)) * (b - a)) for a, b in zip(low, high, strict=True))  # type: ignore[return-value]


def test_the_saved_page_opens_without_a_server(
    live: LiveView, cross: MapGroup, browser: Browser, tmp_path: Path
) -> None:
    live.head(1, 1).click()
    file = tmp_path / "view.html"
    file.write_bytes(live.save("page"))
    context = browser.new_context(offline=True)
    opened = context.new_page()
    opened.goto(file.as_uri())
    expect(opened.locator('button.head[data-layer="1"][data-head="1"]')).to_have_attribute("aria-selected", "true")
    opened.locator('button.head[data-layer="0"][data-head="2"]').click()
    stage = opened.get_by_role("application").first
    expect(stage).to_have_attribute("data-exact", "true")
    opened.locator("[data-part=exports] summary").click()
    with opened.expect_download() as download:
        opened.locator("[data-export=npz]").click()
    with np.load(download.value.path()) as saved:
        np.testing.assert_array_equal(saved["weights"], weights_of(cross, 0, 2))
    expect(opened.locator("[data-export=page]")).to_be_hidden()
    context.close()


def test_a_finger_reads_cell_after_cell_along_a_pinned_row(browser: Browser, cross: MapGroup) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    live = LiveView(page, View([cross], view_words()), START)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = live.map.bounding_box()
    assert box
    live.map.tap(position={"x": box["width"] * 0.5, "y": box["height"] * 0.6})
    first = read_tip(live)
    live.map.tap(position={"x": box["width"] * 0.3, "y": box["height"] * 0.6})
    second = read_tip(live)
    assert first[0] == second[0]
    assert first[1] != second[1]
    expect(page.locator("[data-part=queryLine] [aria-pressed=true]")).to_have_text(first[0])
    context.close()


def test_a_state_from_a_link_is_shown(page: Page, cross: MapGroup) -> None:
    look = Look(mode="links", scale="log", palette="greys", unit="words", sort="entropy", heads="layer", how="max")
    live = LiveView(page, View([cross], view_words()), ViewState("cross", 1, 2, (Pin("key", 1),), look))
    for part, value in (("mode", "links"), ("scaleChoice", "log"), ("palette", "greys"), ("unit", "words")):
        assert live.option(part, value).get_attribute("aria-pressed") == "true"
    expect(live.page.get_by_label("Sort by")).to_have_value("entropy")
    expect(page.locator("[data-part=keyLine] [aria-pressed=true]")).to_have_text("black")


def test_strangers_tokens_are_only_text(page: Page) -> None:
    tokens = ("<img src=x onerror=window.hit=1>", "</script>", "{value}", "\u202egnp", "\ud800", "a\nb")
    group = make_group(6, 6, "self", query_tokens=tokens, key_tokens=tokens)
    live = LiveView(page, View([group], view_words()), ViewState("self", 0, 0))
    expect(page.locator("[data-part=queryLine] .token").first).to_have_text(tokens[0])
    assert page.locator("img").count() == 0
    assert saved_npz(live)["keys"].shape == (6,)
    assert "<img" not in live.save("svg").decode()
    assert page.evaluate("window.hit") is None
