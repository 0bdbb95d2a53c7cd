"""What every chapter keeps: it fits a phone, everybody can read it, and a link opens what it was copied from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import expect_no_more_than
from tests.browser.over_the_picture import click_patch, expect_read, stage_of
from ui.contents import all_chapters
from ui.words import load_words
from viz_core.images.drawn import GARMENTS
from viz_core.pretrained import load_classifier

Seen = Callable[[Page], None]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1400, "height": 900}
FIRST_SIGHT = 700  # pixels


def first_picture(page: Page) -> None:
    page.get_by_role("application").or_(page.get_by_role("figure")).first.scroll_into_view_if_needed()
    drawn = page.get_by_role("application").or_(page.locator("[data-drawn]"))
    expect(drawn.first).to_be_visible()


def exercise(page: Page) -> None:
    expect(page.get_by_text("Predict, then reveal").first).to_be_visible()


def stopwatch(page: Page) -> None:
    expect(page.get_by_role("button", name="Start the stopwatch")).to_be_visible()


def similarity(page: Page) -> None:
    tab = page.get_by_role("tab", name="Similarity")
    tab.scroll_into_view_if_needed()  # it comes to who is near
    tab.click()
    expect(page.get_by_role("application").nth(1)).to_be_visible()


def every_section(page: Page) -> None:
    """Of position embeddings, which has most of them."""
    for section in ("One scheme, closer", "Cost and reach", "Shuffle the words", "Side by side"):
        expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
        page.get_by_role("tab", name=section).click()
        expect(page.get_by_role("tab", name=section)).to_have_attribute("aria-selected", "true")
        expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
        first_picture(page)
        exercise(page)
        expect(page.get_by_test_id("stException")).to_have_count(0)
        expect_nothing_over_the_side(page)


def patch_under_a_finger(page: Page) -> None:
    expect(stage_of(page)).to_be_visible()
    click_patch(page, 3, 3)
    expect(page.locator("[data-part=sentenceNote]")).to_contain_text("Pinned: row 4, column 4.")


# Beyond its first picture.
SEEN: dict[str, Seen] = {
    "architectures?a-section=Stopwatch&a-most=4096&a-width=256": stopwatch,
    "multi-head": exercise,
    "position-embeddings": every_section,
    "sinusoidal-encoding": similarity,
    "vision-transformer": patch_under_a_finger,
}


def expect_nothing_over_the_side(page: Page) -> None:
    wide = "[document.documentElement, document.querySelector('[data-testid=stMain]')].map((e) => e.scrollWidth)"
    assert max(page.evaluate(wide)) <= PHONE["width"]


def expect_a_picture_at_once(page: Page) -> None:
    """The first picture, or every head as a thumbnail, stands within what a projector shows without scrolling."""
    main = page.get_by_test_id("stMain")
    pictures = main.get_by_role("figure").or_(main.get_by_role("application")).or_(main.locator("[data-part=grid]"))
    first = pictures.or_(main.locator(".stImage img")).first
    bottom = "(node, main) => node.getBoundingClientRect().bottom + main.scrollTop"
    expect(first).to_be_visible()
    assert first.evaluate(bottom, main.element_handle()) <= FIRST_SIGHT


@pytest.mark.parametrize("address", dict.fromkeys([*all_chapters()[1:], *SEEN]))
def test_no_chapter_shows_an_error_or_runs_over_the_side_of_a_phone_or_keeps_somebody_out(
    page: Page, app_url: str, found_in_empty: list[str], address: str
) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{app_url}/{address}")
    title = load_words(address.split("?")[0]).title
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    first_picture(page)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)  # the run has ended
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect_nothing_over_the_side(page)
    if "?" not in address:
        page.set_viewport_size(DESK)
        expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")
        expect_a_picture_at_once(page)
        expect_no_more_than(found_in_empty, page)
        page.set_viewport_size(PHONE)
        expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    SEEN.get(address, first_picture)(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect_nothing_over_the_side(page)


def third_step(page: Page) -> None:
    expect(page.get_by_text("At step 3 the decoder looks most at")).to_be_visible()


def head_and_pin(page: Page) -> None:
    expect(page.get_by_label("An English sentence")).to_have_value("I lost.")
    expect(page.get_by_role("tab", name="Encoder self")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-part=printName]")).to_have_text("Layer 2, head 3")
    expect(page.get_by_text("Pinned: lost.")).to_be_visible()


def smooth_look_at_a_patch(page: Page) -> None:
    found = load_classifier("vit-fashion-mnist", "cpu").classify(GARMENTS["trouser"]())
    expect(page.get_by_role("heading", name=f"It says: {found.label}")).to_be_visible()
    expect(page.locator("[data-part=patches] [data-value=smooth]")).to_have_attribute("aria-pressed", "true")
    expect_read(page, found, 2, 4, 10)


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("bahdanau?b-text=Where+did+you+buy+this+book%3F&b-step=3", third_step),
        ("transformer?t-text=I+lost.&head=encoder-self.1.2&pin=q1", head_and_pin),
        (
            "vision-transformer?vt-sample=trouser&head=encoder-self.2.4&pin=q10&look=patches-smooth",
            smooth_look_at_a_patch,
        ),
    ],
)
def test_a_link_opens_the_same_view(page: Page, app_url: str, address: str, seen: Seen) -> None:
    page.goto(f"{app_url}/{address}")
    seen(page)
