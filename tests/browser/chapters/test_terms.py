"""A chapter as it opens: its essentials fit, text and figure are linked, and what a wrong formula breaks is in view.

A term of the definition lights the part of a figure that it names, and that part lights the term.
"""

from itertools import groupby
from operator import itemgetter
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page_checks import box_of, expect_nothing_jumped, expect_rest, go, watch
from ui.chapter.contents import all_chapters, chapter_entries
from ui.text.words import load_words

DESK = {"width": 1400, "height": 900}
FIRST_SIGHT = 720  # pixels of the 900: question, definition, formula and controls stand above the picture
_SCREENS = 2
_WORDS = 420  # "about 350", with the labels of controls and badges

_COUNT = """() => {
  const deeper = document.querySelector('.st-key-deeper');
  const texts = [...document.querySelectorAll(
    '.stMainBlockContainer :is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer])')];
  const above = texts.filter((each) =>
    !deeper.contains(each) && deeper.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING
    && !each.querySelector('[data-testid=stMarkdownContainer]'));
  const words = above.flatMap((each) => (each.innerText || '').split(/\\s+/)).filter((word) => /[a-z]/i.test(word));
  const main = document.querySelector('[data-testid=stMain]');
  return { words: words.length, end: deeper.getBoundingClientRect().top + main.scrollTop };
}"""

_FORMULA_STICKS_OUT = """() => {
  const { top, bottom } = document.querySelector('.st-key-definition').lastElementChild.getBoundingClientRect();
  const signs = [...document.querySelectorAll('.st-key-definition > :last-child .katex-html span')].filter((each) =>
    !each.children.length && each.textContent.trim() && !each.matches('.vlist-s'));
  return signs.filter((each) => each.getBoundingClientRect().bottom > bottom + 1
    || each.getBoundingClientRect().top < top - 1).map((each) => each.textContent);
}"""


# Waits until where the optional sections begin has been the same for half a second.
_STILL = """async () => {
  const begin = () => document.querySelector(".st-key-deeper").getBoundingClientRect().top;
  for (let [last, same] = [begin(), 0]; same < 10; last = begin()) {
    await new Promise((done) => setTimeout(done, 50));
    same = begin() === last ? same + 1 : 0;
  }
}"""


def expect_still(page: Page) -> None:
    """The essentials have been as high as they are for half a second."""
    page.evaluate(_STILL)


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


def expect_essentials_to_fit(page: Page) -> None:
    """The essentials of the chapter that is open in a window of the size `DESK`."""
    expect(page.locator(".st-key-deeper")).to_be_visible()
    for part in ("definition",) if page.url.endswith("/model-lab") else ("definition", "takeaways-fold", "next"):
        expect(page.locator(f"[class*='st-key-{part}']").first).to_be_visible()
    assert not page.locator(".st-key-deeper details[open]").count(), "sections cost nothing until they are opened"
    expect_rest(page)
    expect_still(page)  # figures that draw themselves take their height
    found = page.evaluate(_COUNT)
    assert found["end"] <= _SCREENS * DESK["height"], found
    assert found["words"] <= _WORDS, found
    assert page.evaluate(_FORMULA_STICKS_OUT) == []


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

_FAILS = ".st-key-broken [class*=-fails]"
# Lower edges of badges where nobody has scrolled.
_BOTTOMS = """(badges) => {
  const main = document.querySelector("[data-testid=stMain]");
  return badges.map((badge) => badge.getBoundingClientRect().bottom + main.scrollTop);
}"""
_BROKEN = {
    "queries-keys-values": "undivided",
    "attention-pooling": "signed",
    "scoring-functions": "no-softmax",
    "bahdanau": "no-tanh",
    "multi-head": "undivided",
    "architectures": "shallow",
    "linear-attention": "no-removal",
    "sinusoidal-encoding": "single",
    "relative-projection": "mirrored",
    "position-embeddings": "no-order",
    "transformer": "no-mask",
    "vision-transformer": "shuffled",
    "learning": "untrained",
    "model-lab": "no-mask",
    "heads": "no-chance",
    "atom-mapping": "missing",
}
"""By chapter, a wrong formula that its main figure offers."""


def definitions() -> list[str]:
    return [name for name in all_chapters() if load_words(name, "en").has("definition")]


def ready(page: Page) -> Locator:
    """Wait for the figures and the scripts of the chapter, and return the terms of its definition."""
    page.set_viewport_size(TALL)
    links = page.locator(_LINKS)
    expect(links.first).to_be_visible()
    expect_rest(page)
    expect_still(page)  # figures draw themselves
    page.wait_for_function(_LISTENS, arg=_LINKS)
    page.evaluate(_WATCH)
    return links


def names_of(links: Locator) -> set[str]:
    return set(links.evaluate_all("links => links.map((link) => link.getAttribute('href').slice('#part-'.length))"))


def seen(page: Page) -> set[str]:
    return set(page.evaluate("[...globalThis.seenTerms]"))


@pytest.mark.parametrize("chapter", definitions())
def test_a_chapter_fits_links_terms_and_figures_and_shows_what_a_wrong_formula_breaks(
    page: Page, app_url: str, chapter: str
) -> None:
    """Terms and figures by mouse and by keyboard, from either side."""
    words = load_words(chapter, "en")
    watch(page)
    page.set_viewport_size(DESK)
    page.goto(f"{app_url}/{chapter}")
    expect(page.get_by_role("heading", level=1, name=words.title)).to_be_visible()
    expect_nothing_jumped(page)
    expect_a_picture_at_once(page)
    expect(page.locator(".st-key-on-the-walk [aria-current=location]")).to_have_count(
        len(chapter_entries()[chapter].walk)
    )
    expect_essentials_to_fit(page)
    links = ready(page)
    lights_what_it_names(page, links, f"{app_url}/{chapter}")
    is_lit_by_what_it_names(page, links, words.prefix)
    page.set_viewport_size(DESK)
    key = words.prefix + ("-break-order" if chapter == "position-embeddings" else "-break")
    go(page, f"/{chapter}?{urlencode({key: words(f'option.{_BROKEN[chapter]}')})}", page.locator(_FAILS))
    shows_what_breaks(page)
    if chapter == "architectures":
        go(page, f"/{chapter}?a-guess-twice=3", page.locator(".st-key-takeaways"))
        opens_the_section_that_shows_it(page)


def opens_the_section_that_shows_it(page: Page) -> None:
    """A takeaway, once its question is answered."""
    section = page.locator(".st-key-section-table details").first
    expect(section).not_to_have_attribute("open", "")
    page.locator(".st-key-takeaways a[href='#section-table']").click()
    expect(section).to_have_attribute("open", "")
    expect(section).to_be_in_viewport()


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
    box = box_of(figure)
    for row, rest in groupby(places, key=itemgetter(0)):
        for _, column in rest:
            page.mouse.move(
                box["x"] + (column + 0.5) * box["width"] / _COLUMNS, box["y"] + (row + 0.5) * box["height"] / _ROWS
            )
            page.wait_for_timeout(_PAUSE)
        if seen(page) >= names:
            return


def shows_what_breaks(page: Page) -> None:
    """Beside the intact figure, whose claims hold, without scrolling."""
    intact = page.locator(".st-key-intact").first
    failing = page.locator(".st-key-broken").first.locator("[class*=-fails]")
    expect(failing.first).to_be_visible()
    expect_rest(page)
    expect(intact.locator("[class*=-fails]")).to_have_count(0)
    expect(intact.locator("[class*=st-key-checks-]").first).to_be_visible()
    for bottom in failing.evaluate_all(_BOTTOMS):
        assert bottom <= DESK["height"], "the failing badge is below the fold"
