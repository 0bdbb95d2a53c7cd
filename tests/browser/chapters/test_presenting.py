"""Presenting: a link or a key fills the window with one figure after another, and Escape brings the page back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import expect_rest


def expect_to_fill(page: Page, figure: Locator) -> None:
    filled = "(node) => node.clientWidth > 0.85 * innerWidth && node.clientHeight > 0.6 * innerHeight"
    for _ in range(240):
        if figure.evaluate(filled):  # a run may have put another node in its place
            return
        page.wait_for_timeout(250)
    raise AssertionError("it does not fill the window")


def test_a_link_opens_on_the_first_figure_keys_go_on_and_escape_ends(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding?present=1&se-n=40&lang=zh-TW")
    presenting = page.locator("html[data-presenting]")
    place = page.get_by_text(re.compile(r"^第 \d+ 張，共 \d+ 張$"))
    sidebar, map_ = page.get_by_test_id("stSidebar"), page.get_by_role("application").first
    expect(presenting).to_be_attached()
    expect(place).to_have_text(re.compile("^第 1 張"))
    expect(place).to_be_visible()
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("slider").filter(visible=True)).to_have_count(0)  # no control is left
    expect(page.locator("html")).to_have_css("font-size", "21px")
    for size in ({"width": 1400, "height": 900}, {"width": 1920, "height": 1080}):
        page.set_viewport_size(size)
        expect_to_fill(page, map_)
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text(re.compile("^第 2 張"))
    expect(map_).to_be_hidden()
    page.keyboard.press("PageUp")
    expect(map_).to_be_visible()
    page.keyboard.press("Escape")
    expect(presenting).not_to_be_attached()
    expect(sidebar).to_be_visible()
    assert "present" not in page.url
    assert "se-n=40" in page.url
    page.locator("body").press("p")
    expect(presenting).to_be_attached()
    page.keyboard.press("p")
    expect(presenting).not_to_be_attached()


@pytest.mark.parametrize(
    ("address", "shown", "title"),
    [
        ("transformer?present=exercise-aligner", ".st-key-exercise-aligner", "aligns the word being written"),
        ("multi-head?present=figure-flow&mh-open-flow=true", ".st-key-part-multi-head-figure-flow", ""),
        ("multi-head?present=figure-nowhere", ".st-key-maps", ""),
    ],
)
def test_a_link_begins_with_the_figure_or_question_it_names(
    page: Page, app_url: str, address: str, shown: str, title: str
) -> None:
    """Also in a section that is closed; where there is none of that name, with the first."""
    page.goto(f"{app_url}/{address}")
    presented = page.locator(f"{shown}:is([data-presented=figure], [data-presented=question])")
    expect(presented).to_be_visible()
    expect(presented).to_contain_text(title)
    page.wait_for_timeout(1000)  # sections open above it
    expect(presented).to_be_visible()
    assert address.split("present=")[1].split("&")[0] in page.url
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    expect(page.locator("html[data-presenting]")).not_to_be_attached()
    assert "present" not in page.url


def test_a_class_sees_the_sentence_and_all_figures(page: Page, app_url: str) -> None:
    """The chapter from its first figure to the last of its closed sections; its first question on the way."""
    page.goto(f"{app_url}/bahdanau?present=1&b-text=He+is+calm.")
    bar = page.get_by_role("toolbar", name="Present")
    expect(bar).to_contain_text("Bahdanau attention · He is calm. → Il est calme.")
    first = page.locator(".st-key-figure-weights")
    expect_to_fill(page, first)
    expect(page.get_by_text("has the largest weight").first).to_be_visible()  # what to look for

    question = page.locator(".st-key-exercise-bottleneck")
    go_to(page, question)
    expect(question.get_by_text("this is the bottleneck")).to_have_count(0)
    question.get_by_text("The last state").click()
    expect(question.get_by_text("this is the bottleneck")).to_be_visible()

    go_to(page, page.locator(".st-key-part-bahdanau-figure-alike-curves"))  # of a section that nobody has opened
    place = bar.get_by_text(re.compile(r"^\d+ of \d+$"))
    page.keyboard.press("Escape")
    expect(place).to_have_count(0)


def go_to(page: Page, figure: Locator) -> None:
    """Click until the figure is shown; where the chapter still opens its sections, wait for it."""
    expect(figure).to_be_attached()
    for _ in range(40):
        if figure.is_visible():
            return
        page.get_by_role("button", name="Next figure", exact=True).click()
    raise AssertionError("it is not among the figures")


def test_back_and_forward_between_two_presented_chapters(page: Page, app_url: str) -> None:
    """What a lesson or the tour opens without loading the page anew; each chapter's own figures are presented."""
    bar = page.get_by_role("toolbar", name="Present")
    page.goto(f"{app_url}/sinusoidal-encoding?present=1")
    expect(bar).to_contain_text("Sinusoidal encoding")
    expect_rest(page)
    page.evaluate(
        """() => {
          history.pushState({}, "", "relative-projection?present=1");
          dispatchEvent(new PopStateEvent("popstate", { state: {} }));
        }"""
    )
    expect(bar).to_contain_text("Relative projection")
    for step, name, title in (
        (page.go_back, "sinusoidal-encoding", "Sinusoidal encoding"),
        (page.go_forward, "relative-projection", "Relative projection"),
        (page.go_back, "sinusoidal-encoding", "Sinusoidal encoding"),
    ):
        step()
        expect(bar).to_contain_text(title)
        page.wait_for_timeout(1000)  # sections open
        expect(page).to_have_url(re.compile(f"/{name}[?].*present=1"))
        expect(bar).to_contain_text(title)
