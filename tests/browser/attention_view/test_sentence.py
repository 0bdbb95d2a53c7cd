"""The sentence shaded by what its tokens look at."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.attention_view.live_view import LiveView
from tests.browser.attention_view.reading import KEYS, colour, saved_npz, weights_of
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.requests import Pin
from viz_core.view.state import DisplayOptions, ViewState
from viz_core.view.words import view_words


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


def test_a_state_from_a_link_is_shown(page: Page, cross: MapGroup) -> None:
    display = DisplayOptions(
        mode="links", scale="log", palette="greys", unit="words", sort="entropy", heads="layer", how="max"
    )
    live = LiveView(page, View([cross], view_words()), ViewState("cross", 1, 2, (Pin("key", 1),), display))
    for part, value in (("mode", "links"), ("scaleChoice", "log"), ("palette", "greys"), ("unit", "words")):
        assert live.option(part, value).get_attribute("aria-pressed") == "true"
    expect(live.page.get_by_label("Sort by")).to_have_value("entropy")
    expect(page.locator("[data-part=keyLine] [aria-pressed=true]")).to_have_text("black")


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
