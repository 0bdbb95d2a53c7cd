"""A chapter as it opens: its essentials fit, and text and figure are linked.

A term of the definition lights the part of a figure that it names, and that part lights the term.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.essentials import DESK, expect_essentials_to_fit
from tests.browser.page_checks import expect_rest
from ui.chapter.contents import all_chapters
from ui.text.words import load_words

TALL = {"width": 1400, "height": 1400}
_LINKS = ".st-key-definition a[href^='#part-']"
_ROWS, _COLUMNS = 14, 18  # of places in a figure that the pointer visits
_STRIDES = (4, 2, 1)  # coarsely in all figures first: most parts are large
_PAUSE = 15  # ms at each
# Whether the page listens yet: a term that is pointed at is lit.
_LISTENS = """(links) => {
  const link = document.querySelector(links);
  const tell = (name) => link.dispatchEvent(new PointerEvent(name, { bubbles: true }));
  tell("pointerover");
  const lit = "lit" in link.dataset;
  tell("pointerout");
  return lit;
}"""
# Names of the terms that were lit since this was called, above the optional sections.
_WATCH = """() => {
  const seen = (globalThis.seenTerms = new Set());
  const read = () => {
    for (const { hash } of document.querySelectorAll('a[data-lit="term"]')) seen.add(hash.slice("#part-".length));
  };
  const definition = document.querySelector(".st-key-definition");
  new MutationObserver(read).observe(definition, { subtree: true, attributeFilter: ["data-lit"] });
}"""
# Everything in the essentials that takes the focus: controls, charts, heatmaps, heads and kinds of maps.
_FOCUS_ALL = """async () => {
  const within = ({ shadowRoot }) => (shadowRoot ? all(shadowRoot) : []);
  const all = (root) => [...root.querySelectorAll("*")].flatMap((each) => [each, ...within(each)]);
  const deeper = document.querySelector(".st-key-deeper");
  for (const each of all(document.querySelector(".stMainBlockContainer"))) {
    if (each.matches("a") || deeper.contains(each) || deeper.contains(each.getRootNode().host ?? null)) continue;
    if (!each.matches("button, input, [tabindex]")) continue;
    each.focus({ preventScroll: true });
    await null; // what is lit is noted
  }
  document.activeElement?.blur();
}"""


def definitions() -> list[str]:
    return [name for name in all_chapters() if load_words(name, "en").has("definition")]


def open_chapter(page: Page, url: str) -> Locator:
    """Open a chapter, whose essentials fit, wait for its figures, and return the terms of its definition."""
    page.set_viewport_size(DESK)
    page.goto(url)
    expect_essentials_to_fit(page)
    page.set_viewport_size(TALL)
    links = page.locator(_LINKS)
    expect(links.first).to_be_visible()
    expect_rest(page)
    page.wait_for_timeout(1_000)  # figures draw themselves
    page.wait_for_function(_LISTENS, arg=_LINKS)
    page.evaluate(_WATCH)
    return links


def names_of(links: Locator) -> set[str]:
    return set(links.evaluate_all("links => links.map((link) => link.getAttribute('href').slice('#part-'.length))"))


def seen(page: Page) -> set[str]:
    return set(page.evaluate("[...globalThis.seenTerms]"))


@pytest.mark.parametrize("chapter", definitions())
def test_essentials_fit_and_a_term_and_what_it_names_light_each_other(page: Page, app_url: str, chapter: str) -> None:
    """By mouse and by keyboard, from either side."""
    links = open_chapter(page, f"{app_url}/{chapter}")
    lights_what_it_names(page, links, f"{app_url}/{chapter}")
    is_lit_by_what_it_names(page, links, load_words(chapter, "en").prefix)


def lights_what_it_names(page: Page, links: Locator, url: str) -> None:
    lit = page.locator("[data-lit]:not(a)")
    assert len(names_of(links)) > 1
    for link in links.all():
        link.hover()
        expect(lit.first).to_be_attached()
        expect(link).to_have_attribute("data-lit", "term")
        page.mouse.move(1, 1)
        expect(lit).to_have_count(0)
        link.focus()
        expect(lit.first).to_be_attached()
        link.blur()
        expect(lit).to_have_count(0)
        expect(page).to_have_url(url)


def is_lit_by_what_it_names(page: Page, links: Locator, prefix: str) -> None:
    names = names_of(links)
    page.evaluate("globalThis.seenTerms.clear()")
    page.evaluate(_FOCUS_ALL)
    assert seen(page) >= names, "by keyboard"
    page.evaluate("globalThis.seenTerms.clear()")
    for name in names:
        control = page.locator(f".st-key-{prefix}-{name}")
        if control.count():
            control.hover()
    figures = page.locator(".stMainBlockContainer").locator(
        "[role=figure], [role=application], [role=grid], [role=tablist]"
    )
    essential = [
        figure
        for figure in figures.all()
        if figure.is_visible() and not figure.evaluate("figure => Boolean(figure.closest('.st-key-deeper'))")
    ]
    visited: set[tuple[int, int]] = set()
    for stride in _STRIDES:
        places = {(row, column) for row in range(0, _ROWS, stride) for column in range(0, _COLUMNS, stride)}
        for figure in essential:
            if seen(page) >= names:
                break
            sweep(page, figure, sorted(places - visited), names)
        visited |= places
    assert seen(page) >= names, "by mouse"


def sweep(page: Page, figure: Locator, places: list[tuple[int, int]], names: set[str]) -> None:
    """Move the pointer to places in a figure, row after row, until it has lit all names."""
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    assert box
    for row, rest in groupby(places, key=itemgetter(0)):
        for _, column in rest:
            page.mouse.move(
                box["x"] + (column + 0.5) * box["width"] / _COLUMNS, box["y"] + (row + 0.5) * box["height"] / _ROWS
            )
            page.wait_for_timeout(_PAUSE)
        if seen(page) >= names:
            return
