"""What every chapter keeps: it fits a phone, nothing jumps, everybody can use it, and links lead on."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import cycle

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import Scheme, expect_no_more_than
from tests.browser.chapters.test_vision_transformer import click_patch, expect_read, stage_of
from tests.browser.page_checks import (
    expect_keys_to_reach_all,
    expect_nothing_jumped,
    expect_rest,
    expect_streamlit_to_speak,
    expect_texts_to_fit,
    open_sheets,
    wait_until,
    watch,
)
from ui.chapter.contents import all_chapters, all_pages
from ui.text.words import Words, languages, load_words
from viz_core.pretrained import load_classifier
from viz_core.pretrained.samples import drawn_picture

Seen = Callable[[Page, Words], None]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1400, "height": 900}
WITHOUT_FIGURE = ("home", "review")
CHAPTERS = all_chapters()[1:]

# Upper edges of the main card's figure, in the shadow of a component too, and of its first control.
FIRST = """() => {
  const all = (root) => [...root.querySelectorAll("*")]
    .flatMap((each) => [each, ...all(each.shadowRoot ?? new DocumentFragment())]);
  const inside = all(document.querySelector('[class*="st-key-card-"]'));
  const top = (names, least) => inside.filter((each) => each.matches(names)).map((each) => each.getBoundingClientRect())
    .find(({ height }) => height >= least)?.top;
  return { figure: top('[role="application"]', 60) ?? top("[data-drawn]", 60), control: top("input, button", 1) };
}"""
VISIBLE = 120  # px of the figure, at least


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


# Each page is looked at in one language and one scheme of colours, with all of it open at both sizes; `make languages`
# looks at all.
IN_TURN = list(zip(all_pages(), cycle(languages()), cycle(("light", "light", "dark", "dark")), strict=False))


@pytest.mark.parametrize(("chapter", "language", "scheme"), IN_TURN)
def test_no_chapter_jumps_shows_an_error_or_hides_a_text_or_keeps_somebody_out(
    page: Page, app_url: str, found_in_empty: list[str], chapter: str, language: str, scheme: Scheme
) -> None:
    """At a desk the chapters are opened in test_terms.py, other pages here."""
    words = load_words(chapter, language)
    page.emulate_media(color_scheme=scheme)
    watch(page)
    for size in (PHONE,) if words.has("definition") else (DESK, PHONE):
        page.set_viewport_size(size)
        page.goto(f"{app_url}/{'' if chapter == 'home' else chapter}?lang={language}")
        expect(page.get_by_role("heading", level=1, name=words.title)).to_be_visible()
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect_nothing_jumped(page)
    if chapter in CHAPTERS:
        wait_until(page, f"({FIRST})().figure")
        first = page.evaluate(FIRST)
        assert 0 < first["control"] < PHONE["height"], first
        assert first["figure"] < PHONE["height"] - VISIBLE, first
        for following in CHAPTERS[CHAPTERS.index(chapter) + 1 :][:1]:
            expect(page.locator(".st-key-next a")).to_have_attribute("href", re.compile(rf"(^|/){following}\b"))
    if chapter not in WITHOUT_FIGURE:
        first_picture(page)
    expect_texts_to_fit(page)
    open_sheets(page, code=chapter == "queries-keys-values")  # one chapter's will do: it is long
    if chapter in SEEN:
        SEEN[chapter](page, words)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect_texts_to_fit(page)
    page.set_viewport_size(DESK)
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")
    expect_rest(page)
    expect_texts_to_fit(page)
    expect_no_more_than(found_in_empty, page, scheme)
    expect_streamlit_to_speak(page, language)
    expect_keys_to_reach_all(page)


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


def test_a_newcomer_takes_a_sentence_along_and_home_knows_where_one_has_been(page: Page, app_url: str) -> None:
    """By links at the foot and in the sidebar, from home to the lab, the last chapter."""
    box, sidebar = page.get_by_label("An English sentence"), page.get_by_test_id("stSidebarNav")
    page.goto(app_url)
    expect_rest(page)
    page.locator(".st-key-next").get_by_role("link").click()
    route = (CHAPTERS[0], "bahdanau", "transformer", CHAPTERS[-1])
    for name in route:
        if name != route[0]:
            expect_rest(page)
            sidebar.get_by_role("link", name=load_words(name).menu, exact=True).click()
        expect(page.get_by_role("heading", level=1, name=load_words(name).title, exact=True)).to_be_visible()
        if name == "bahdanau":
            box.fill("I lost.")
            box.press("Enter")
            page.wait_for_url("**/bahdanau?b-text=I+lost*")
        if name == "transformer":
            expect(box).to_have_value("I lost.")
            expect(page).to_have_url(re.compile("t-text=I(%20|[+])lost"))
    expect(page.locator(".st-key-ml-start textarea")).to_have_value("I lost.")
    expect_rest(page)
    page.get_by_test_id("stSidebarNavLink").first.click()
    expect(page.get_by_text(f"You have visited {len(route)} of {len(CHAPTERS)} chapters")).to_be_visible()
    expect(page.locator("[data-last]")).to_have_count(1)
