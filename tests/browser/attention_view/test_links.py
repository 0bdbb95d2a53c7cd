"""Links between queries and keys."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.attention_view.live_view import LiveView
from tests.browser.attention_view.reading import QUERIES, weights_of
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.words import view_words


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


def test_a_link_is_drawn_for_each_weight_from_the_threshold_on(live: LiveView, cross: MapGroup) -> None:
    live.option("mode", "links").click()
    live.part("least").fill("0.25")
    drawn = re.findall(r"<path [^>]*stroke-width=\"([\d.]+)\"", live.save("svg").decode())
    weights = weights_of(cross, 0, 0)
    strong = np.sort(weights[weights >= 0.25])
    np.testing.assert_allclose([float(width) for width in drawn], 0.6 + 3.4 * strong, atol=0.006)


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


@pytest.mark.parametrize(
    ("language", "weight", "count"),
    [
        ("en", "weight of 0.25 or more", "1 key per query"),
        ("pt-BR", "peso de 0,25 ou mais", "1 chave por consulta"),
        ("zh-TW", "權重 0.25 以上", "每個查詢 1 個鍵"),
    ],
)
def test_a_screen_reader_hears_what_the_slider_of_links_means(
    page: Page, cross: MapGroup, language: str, weight: str, count: str
) -> None:
    live = LiveView(page, View([cross], view_words(language), language=language))
    live.wait_until_exact()
    live.option("mode", "links").click()
    live.part("least").fill("0.25")
    expect(live.part("least")).to_have_attribute("aria-valuetext", weight)
    live.option("rule", "k").click()
    live.part("least").fill("1")
    expect(live.part("least")).to_have_attribute("aria-valuetext", count)
