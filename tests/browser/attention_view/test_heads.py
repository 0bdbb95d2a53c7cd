"""The grid of heads: fingerprints, order, filter; heads combined and compared."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from tests.browser.attention_view.live_view import (
    KEYS,
    QUERIES,
    START,
    LiveView,
    point_at_cell,
    saved_npz,
    weight_in,
    weights_of,
)
from tests.viz_core.view.attention_groups import make_group
from viz_core.maps.measures import attention_entropy, combine_heads, key_mass, query_information
from viz_core.maps.word_maps import merge_words
from viz_core.view.components import view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View


def test_the_grid_is_sorted_and_filtered_by_fingerprint(live: LiveView, cross: MapGroup) -> None:
    live.page.get_by_label("Sort by").select_option("entropy")
    prints = {
        (layer, head): cross.picture(layer).fingerprints[head]["entropy"] for layer in range(2) for head in range(3)
    }
    expected = sorted(prints, key=lambda head: -prints[head])
    buttons = live.page.locator("button.head")
    shown = buttons.evaluate_all("all => all.map((b) => [Number(b.dataset.layer), Number(b.dataset.head)])")
    assert [tuple(head) for head in shown] == expected

    middle = (prints[expected[2]] + prints[expected[3]]) / 2
    live.page.evaluate("document.activeElement.blur()")  # wherever the page has focus
    live.page.keyboard.press("/")
    expect(live.part("filter")).to_be_focused()
    live.page.keyboard.type(f"entr > {middle:.3f}")
    expect(buttons).to_have_count(3)
    expect(live.part("gridNote")).to_have_text(f"3 of {len(prints)} heads.")
    live.part("filter").fill("nonsense")
    expect(live.part("filter")).to_have_attribute("aria-invalid", "true")
    expect(buttons).to_have_count(len(prints))


@pytest.mark.parametrize("how", ["mean", "max"])
def test_heads_are_combined_as_the_library_does(live: LiveView, cross: MapGroup, how: str) -> None:
    live.option("heads", "layer").click()
    live.option("how", how).click()
    expected = combine_heads(cross.calls[0].weights()[0], how)  # type: ignore[arg-type]
    np.testing.assert_allclose(saved_npz(live)["weights"], expected, atol=1e-7)
    expect(live.part("printName")).to_have_text("Mean of 3 heads" if how == "mean" else "Largest of 3 heads")
    check_measures(live, expected, sums_to_one=how == "mean")


def test_measures_are_those_of_the_map_that_is_shown(live: LiveView, cross: MapGroup) -> None:
    """With words merged they were still those of the map between tokens."""
    live.option("unit", "words").click()
    tokens = cross.calls[0].weights(head=0)[0]
    words = merge_words(tokens, cross.query_words, cross.key_words)
    expect(live.part("printName")).to_have_text("Layer 1, head 1, between words")
    check_measures(live, words)
    live.head(1, 2).hover()
    expect(live.part("printName")).to_have_text("Layer 2, head 3")
    check_measures(live, cross.calls[1].weights(head=2)[0])


def measure_names(live: LiveView) -> set[str]:
    return set(live.page.locator("[data-measure]").evaluate_all("all => all.map((line) => line.dataset.measure)"))


def check_measures(live: LiveView, weights: torch.Tensor, sums_to_one: bool = True) -> None:
    """What the panel says of a map between two sequences, the last of whose keys is a separator."""
    expected = {
        "entropy": float(attention_entropy(weights).mean()) if sums_to_one else None,
        "first": float(key_mass(weights, [0])),
        "separator": float(key_mass(weights, [weights.shape[1] - 1])),
        "information": float(query_information(weights)) if sums_to_one else None,
    }
    known = {name: value for name, value in expected.items() if value is not None}
    assert measure_names(live) == known.keys()
    for name, value in known.items():
        shown = live.page.locator(f"[data-measure={name}] .value").inner_text().removesuffix(" bits")
        assert weight_in(shown) == pytest.approx(value, abs=0.0051), name


def test_chosen_heads_are_combined(live: LiveView, cross: MapGroup) -> None:
    live.head(1, 2).click(modifiers=["Shift"])
    live.until(lambda: live.state.display.heads == "0.0_1.2")
    expected = (weights_of(cross, 0, 0) + weights_of(cross, 1, 2)) / 2
    np.testing.assert_allclose(saved_npz(live)["weights"], expected, atol=1e-7)


def test_two_heads_stand_side_by_side_and_as_a_signed_difference(live: LiveView, cross: MapGroup) -> None:
    live.option("compare", "side").click()
    live.head(1, 1).click()  # the second head is being chosen
    expect(live.page.locator("figcaption")).to_have_text(["Layer 1, head 1", "Layer 2, head 2"])
    live.option("compare", "difference").click()
    expect(live.page.locator("figcaption:visible")).to_have_text(["Layer 1, head 1 − Layer 2, head 2"])
    difference = weights_of(cross, 0, 0) - weights_of(cross, 1, 1)
    np.testing.assert_allclose(saved_npz(live)["weights"], difference, atol=1e-7)
    column = int(np.abs(difference[2]).argmax())
    point_at_cell(live, 2, column)
    expect(live.announcement).to_contain_text(f"{QUERIES[2]} → {KEYS[column]} differs by")


def test_two_texts_are_compared_token_by_token(page: Page) -> None:
    """ "le chat noir dort" and "le chien dort": chat stands where chien does, noir is in one alone."""
    first = make_group(4, 4, query_tokens=("le", "chat", "noir", "dort"), key_tokens=("the", "black", "cat", "sleeps"))
    other = make_group(3, 3, query_tokens=("le", "chien", "dort"), key_tokens=("the", "dog", "sleeps"))
    live = LiveView(page, View([first], view_words(), (other,), ("one", "two")), START)
    live.option("compare", "difference").click()
    live.wait_until_exact()
    saved = saved_npz(live)
    assert [str(name) for name in saved["queries"]] == ["le", "chat | ∅", "noir | chien", "dort"]
    assert [str(name) for name in saved["keys"]] == ["the", "black | ∅", "cat | dog", "sleeps"]
    mine, theirs = weights_of(first, 0, 0), weights_of(other, 0, 0)
    wide = np.insert(theirs, 1, 0, axis=1)  # a key that the second lacks has no weight there
    expected = np.stack([mine[0] - wide[0], 0 * mine[1], mine[2] - wide[1], mine[3] - wide[2]])
    np.testing.assert_allclose(saved["weights"], expected, atol=1e-6)
    expect(live.part("mapNote")).to_contain_text("“cat | dog” replaces cat by dog")
    expect(live.part("scale")).to_contain_text(f"+{np.abs(expected).max():.2f}")  # the colours end at what there is
    point_at_cell(live, 1, 1)
    expect(page.locator("[data-piece=tip]").first).to_contain_text("in one text alone")


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
        expect(live.announcement).to_have_text(re.compile(rf"looks at {re.escape(word)}, {float(weights[row, 4]):.2f}"))
    assert [str(pin) for pin in live.state.pins] == ["k4"]
