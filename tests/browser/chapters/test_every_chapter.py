"""What every chapter keeps: it fits a phone, nothing jumps, everybody can use it, and links lead on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import cycle

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import expect_no_more_than
from tests.browser.chapters.one_window import OneWindow, one_window
from tests.browser.chapters.test_vision_transformer import click_patch, expect_read, stage_of
from tests.browser.page_checks import (
    expect_keys_to_reach_all,
    expect_rest,
    expect_streamlit_to_speak,
    expect_texts_to_fit,
    open_sheets,
)
from ui.chapter.contents import all_chapters, all_pages, chapter_entries
from ui.text.words import Words, languages, load_words
from viz_core.images.drawn import drawn_picture
from viz_core.pretrained import load_classifier

Seen = Callable[[Page, Words], None]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1400, "height": 900}
WITHOUT_FIGURE = ("home", "review")
FIRST_SIGHT = 720  # pixels of the 900: question, definition, formula and controls stand above the picture


def first_picture(page: Page, _: Words | None = None) -> None:
    page.get_by_role("application").or_(page.get_by_role("figure")).first.scroll_into_view_if_needed()
    drawn = page.get_by_role("application").or_(page.locator("[data-drawn]"))
    expect(drawn.first).to_be_visible()


def exercise(page: Page, words: Words) -> None:
    expect(page.get_by_text(load_words("common", words.language)("exercise")).first).to_be_visible()


def stopwatch(page: Page, words: Words) -> None:
    page.locator(".st-key-section-stopwatch").scroll_into_view_if_needed()
    expect(page.get_by_role("button", name=words("stopwatch.start"))).to_be_visible()


def similarity(page: Page, _: Words) -> None:
    section = page.locator(".st-key-section-similarity")
    section.scroll_into_view_if_needed()  # it comes to who is near
    expect(section.get_by_role("application").first).to_be_visible()


def patch_under_a_finger(page: Page, words: Words) -> None:
    expect(stage_of(page)).to_be_visible()
    click_patch(page, 3, 3)
    view_words = load_words("attention-view", words.language)
    expect(page.locator("[data-part=sentenceNote]")).to_contain_text(
        view_words("pinned", token=view_words("patch", row=4, column=4))
    )


# Beyond its first picture.
SEEN: dict[str, Seen] = {
    "architectures": stopwatch,
    "multi-head": exercise,
    "sinusoidal-encoding": similarity,
    "vision-transformer": patch_under_a_finger,
}


def in_turn() -> dict[str, str]:
    """Every chapter and the language it is looked at in."""
    return dict(zip(all_pages(), cycle(languages()), strict=False))


def expect_a_picture_at_once(page: Page) -> None:
    """The first picture, or every head as a thumbnail, begins in the upper part of the first screen."""
    main = page.get_by_test_id("stMain")
    pictures = (
        main.get_by_role("figure")
        .or_(main.get_by_role("application"))
        .or_(main.locator("[data-part=grid], [data-part=stage]"))
    )
    first = pictures.or_(main.locator(".stImage img")).first
    expect(first).to_be_visible()
    at_once = f"([node, main]) => node.getBoundingClientRect().top + main.scrollTop <= {FIRST_SIGHT}"
    page.wait_for_function(at_once, arg=[first.element_handle(), main.element_handle()])  # once the page is drawn wide


@pytest.fixture(scope="module")
def window(app_url: str) -> Iterator[OneWindow]:
    with one_window(app_url) as opened:
        yield opened


@pytest.mark.usefixtures("browser")
@pytest.mark.parametrize(("chapter", "language"), in_turn().items())
def test_no_chapter_shows_an_error_or_hides_a_text_on_a_phone_or_keeps_somebody_out(
    window: OneWindow, found_in_empty: list[str], chapter: str, language: str
) -> None:
    words = load_words(chapter, language)
    address = f"{'' if chapter == 'home' else chapter}?lang={language}"
    with window.at(address, words.title, PHONE) as page:
        expect(page.get_by_role("heading", level=1, name=words.title)).to_be_visible()
        expect(page.locator("html")).to_have_attribute("lang", language)
        if chapter not in WITHOUT_FIGURE:
            first_picture(page)
        expect_rest(page)
        expect(page.get_by_test_id("stException")).to_have_count(0)
        expect_texts_to_fit(page)
        page.set_viewport_size(DESK)
        expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")
        if chapter not in WITHOUT_FIGURE:
            expect_a_picture_at_once(page)
        if entry := chapter_entries().get(chapter):
            here = page.locator(".st-key-on-the-walk [aria-current=location]")
            expect(here).to_have_count(len(entry.walk))
        open_sheets(page, code=chapter == "queries-keys-values")  # one chapter's will do: it is long
        expect_texts_to_fit(page)
        expect_rest(page)
        expect_no_more_than(found_in_empty, page)
        expect_streamlit_to_speak(page, language)
        expect_keys_to_reach_all(page)
        page.set_viewport_size(PHONE)
        expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
        if chapter in SEEN:
            SEEN[chapter](page, words)
        expect(page.get_by_test_id("stException")).to_have_count(0)
        expect_texts_to_fit(page)


def third_step(page: Page) -> None:
    expect(page.get_by_text("At step 3 ")).to_be_visible()


def head_and_pin(page: Page) -> None:
    expect(page.get_by_label("An English sentence")).to_have_value("I lost.")
    expect(page.get_by_role("tab", name="Encoder self")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-part=printName]")).to_have_text("Layer 2, head 3")
    expect(page.get_by_text("Pinned: lost.")).to_be_visible()


def smooth_patches(page: Page) -> None:
    found = load_classifier("vit-fashion-mnist", "cpu").classify(drawn_picture("trouser"))
    expect(page.get_by_role("heading", name=f"Prediction: {found.label}")).to_be_visible()
    expect(page.locator("[data-part=patches] [data-value=smooth]")).to_have_attribute("aria-pressed", "true")
    expect_read(page, found, 2, 4, 10)


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("bahdanau?b-text=Where+did+you+buy+this+book%3F&b-step=3", third_step),
        ("transformer?t-text=I+lost.&head=encoder-self.1.2&pin=q1", head_and_pin),
        (
            "vision-transformer?vt-sample=trouser&head=encoder-self.2.4&pin=q10&look=patches-smooth",
            smooth_patches,
        ),
    ],
)
def test_a_link_opens_the_same_view(page: Page, app_url: str, address: str, seen: Callable[[Page], None]) -> None:
    page.goto(f"{app_url}/{address}")
    seen(page)


GOOD = 0.1  # sum of layout-shift scores (web.dev/cls)
AFTERWARDS = 1500  # ms for the parts that are requested once the page is there
WATCH = """
window.shifts = [];
const describe = ({ node }) => (node?.nodeType === 1 ? node : node?.parentElement)?.innerText?.slice(0, 40);
const note = ({ value, sources }) => window.shifts.push([value, sources.map(describe)]);
new PerformanceObserver((list) => list.getEntries().filter((each) => !each.hadRecentInput).forEach(note))
    .observe({ type: "layout-shift", buffered: true });
"""


# Upper edges of the first figure and of the first control in the main card.
FIRST = """() => {
  const card = document.querySelector('[class*="st-key-card-"]');
  const top = (names, least) => [...card.querySelectorAll(names)].map((each) => each.getBoundingClientRect())
    .find(({ height }) => height >= least)?.top;
  const figure = '[data-testid^="stBidiComponent"], [data-testid="stImage"], canvas';
  return { figure: top(figure, 60), control: top("input, button", 1) };
}"""
VISIBLE = 60  # px of the figure, at least


@pytest.mark.parametrize("name", all_pages())
def test_nothing_jumps_while_a_page_loads(app_url: str, page: Page, name: str) -> None:
    page.add_init_script(WATCH)
    for width, height in ((1400, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{app_url}/{'' if name == all_pages()[0] else name}")
        expect(page.locator("html:not([data-loading])")).to_be_attached()
        page.wait_for_timeout(AFTERWARDS)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        shifts = page.evaluate("window.shifts")
        assert sum(score for score, _ in shifts) <= GOOD, (width, shifts)
    if name in all_chapters()[1:]:
        first = page.evaluate(FIRST)
        assert 0 < first["control"] < height, first
        assert first["figure"] < height - VISIBLE, first


EXISTING = all_chapters()[1:]


def test_a_newcomer_walks_from_home_to_the_model_lab_by_the_links_at_the_foot(page: Page, app_url: str) -> None:
    """A sentence typed on the way comes along, and home knows where one has been."""
    app, box = page.get_by_test_id("stApp"), page.get_by_label("An English sentence")
    page.goto(app_url)
    for name in EXISTING:
        expect(app).to_have_attribute("data-test-script-state", "notRunning")
        page.locator(".st-key-next").get_by_role("link").click()
        expect(page.get_by_role("heading", level=1, name=load_words(name).title, exact=True)).to_be_visible()
        if name == "bahdanau":
            box.fill("I lost.")
            box.press("Enter")
            page.wait_for_url("**/bahdanau?b-text=I+lost*")
        if name == "transformer":
            expect(box).to_have_value("I lost.")
            expect(page).to_have_url(re.compile("t-text=I(%20|[+])lost"))
        if name == "model-lab":
            expect(page.locator(".st-key-ml-start textarea")).to_have_value("I lost.")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    page.get_by_test_id("stSidebarNavLink").first.click()  # the lab is a workbench, and the last chapter
    expect(page.get_by_text(f"You have visited {len(EXISTING)} of {len(EXISTING)} chapters")).to_be_visible()
    expect(page.locator("[data-last]")).to_have_count(1)
