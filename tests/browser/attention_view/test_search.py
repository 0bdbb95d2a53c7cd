"""Search: heads in order of the weight on a word, and its cells, live, in a long text and in a saved page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.attention_view.live_view import LiveView
from tests.browser.attention_view.reading import KEYS
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.map_group import MapGroup
from viz_core.view.page import view_page
from viz_core.view.payload import View
from viz_core.view.state import ViewState
from viz_core.view.words import view_words

HINTS = """boxes => boxes.map(box => {
  const style = getComputedStyle(box), pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return [pen.measureText(box.placeholder).width, room];
})"""


def ranking(group: MapGroup, keys: list[int]) -> list[tuple[int, int]]:
    """Heads by the mean weight on these keys, the most first."""
    weights = {
        (layer, head): float(call.weights(head=head)[0][:, keys].sum(dim=-1).mean())
        for layer, call in enumerate(group.calls)
        for head in range(call.num_heads)
    }
    return sorted(weights, key=lambda head: -weights[head])


def shown(page: Page) -> list[tuple[int, int]]:
    return [
        (int(button.get_attribute("data-layer") or 0), int(button.get_attribute("data-head") or 0))
        for button in page.locator("[data-part=grid] .ranking .head").all()
    ]


def test_a_word_ranks_heads_and_enter_opens_its_cells(live: LiveView, cross: MapGroup) -> None:
    word = KEYS[4]
    live.map.focus()
    live.page.keyboard.press("f")
    expect(live.part("search")).to_be_focused()
    live.part("search").fill(word.upper())
    expect(live.part("searchNote")).to_contain_text(f"“{word.upper()}”: 1 token.")
    expect(live.part("searchNote")).to_contain_text(re.compile(r"layers: L\d 0\.\d\d, L\d 0\.\d\d"))
    expected = ranking(cross, [4])
    assert shown(live.page) == expected
    for layer, head in expected[:2]:
        live.page.keyboard.press("Enter")
        expect(live.head(layer, head)).to_have_attribute("aria-selected", "true")
        weights = cross.calls[layer].weights(head=head)[0]
        row = int(weights[:, 4].argmax())
        value = f"{float(weights[row, 4]):.2f}"
        expect(live.announcement).to_have_text(re.compile(rf"looks at {re.escape(word)}, {re.escape(value)}"))
    assert [str(pin) for pin in live.state.pins] == ["k4"]
    live.page.keyboard.press("Shift+Enter")
    expect(live.head(*expected[0])).to_have_attribute("aria-selected", "true")
    live.page.keyboard.press("Escape")
    expect(live.page.locator("[data-part=grid] .ranking")).to_have_count(0)


def test_pieces_of_a_word_are_found_together_and_a_missing_word_is_named(live: LiveView, cross: MapGroup) -> None:
    whole = (KEYS[2] + KEYS[3]).replace("##", "")  # two pieces of one word
    live.part("search").fill(whole)
    expect(live.part("searchNote")).to_contain_text("2 tokens")
    assert shown(live.page) == ranking(cross, [2, 3])
    live.part("search").fill("zebra")
    expect(live.part("searchNote")).to_have_text("No word here contains “zebra”.")
    expect(live.part("searchNext")).to_be_hidden()


def test_a_long_text_is_zoomed_to_the_word(page: Page) -> None:
    group = make_group(700, 700, "self", layers=1, heads=2)
    live = LiveView(page, View([group], view_words()), ViewState("self", 0, 0))
    live.part("search").fill("k650")
    expect(live.part("searchNext")).to_be_visible()
    expect(live.part("searchNote")).to_contain_text("L1")
    live.part("searchNext").click()
    layer, head = ranking(group, [650])[0]
    expect(live.head(layer, head)).to_have_attribute("aria-selected", "true")
    row = int(group.calls[layer].weights(head=head)[0, :, 650].argmax())
    page.wait_for_function("document.querySelector('[data-part=root]').dataset.zoomed === 'true'")
    expect(live.announcement).to_have_text(re.compile(rf"q{row} looks at k650"))
    live.wait_until_exact()
    zoom = [int(number) for number in live.state.display.zoom.split(".")]
    assert zoom[0] <= row < zoom[0] + zoom[2]
    assert zoom[1] <= 650 < zoom[1] + zoom[3]


@pytest.mark.parametrize(("language", "found"), [("en", "1 token"), ("pt-BR", "camadas: L2 0,21"), ("zh-TW", "層：")])
def test_a_saved_page_searches_without_python(
    page: Page, cross: MapGroup, tmp_path: Path, language: str, found: str
) -> None:
    file = tmp_path / "view.html"
    view = View([cross], view_words(language), language=language)
    file.write_text(view_page(view, ViewState("cross", 0, 0)), encoding="utf-8")
    page.goto(file.as_uri())
    page.locator("[data-part=search]").fill(KEYS[4])
    expect(page.locator("[data-part=searchNote]")).to_contain_text(found)
    assert shown(page) == ranking(cross, [4])
    page.keyboard.press("Enter")
    layer, head = ranking(cross, [4])[0]
    expect(page.locator(f'button.head[data-layer="{layer}"][data-head="{head}"]')).to_have_attribute(
        "aria-selected", "true"
    )


@pytest.mark.parametrize("language", ["en", "pt-BR", "zh-TW"])
def test_hints_of_both_boxes_are_whole(page: Page, app_url: str, language: str) -> None:
    page.goto(f"{app_url}/model-lab?lang={language}")
    boxes = page.locator("input.filter")
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 900})
        expect(boxes.first).to_have_attribute("placeholder", re.compile(r"\S > \d"), timeout=60_000)
        hints = boxes.evaluate_all(HINTS)
        assert len(hints) == 2
        assert all(hint <= room for hint, room in hints), (width, hints)
