"""What every chapter keeps: its essentials fit, text and figure are linked, a wrong formula fails in view, nothing
jumps, everybody can use it, and links lead on."""

import re
from itertools import cycle
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import Scheme, expect_no_more_than
from tests.browser.page_checks import (
    box_of,
    expect_keys_to_reach_all,
    expect_no_answer_in_sight,
    expect_nothing_jumped,
    expect_rest,
    expect_streamlit_to_speak,
    expect_texts_to_fit,
    go,
    open_sheets,
    wait_until,
    watch,
)
from ui.chapter.contents import all_chapters, all_pages, chapter_entries
from ui.text.words import languages, load_words

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1400, "height": 900}
TALL = {"width": 1400, "height": 1400}
CHAPTERS = all_chapters()[1:]
FIRST_SIGHT = 720  # pixels of the 900: question, definition, formula and controls stand above the picture
VISIBLE = 120  # px of the figure on a phone, at least
_SCREENS = 2
_WORDS = 420  # "about 350", with the labels of controls and badges
_LINKS = ".st-key-definition a[href^='#part-']"
_FAILS = ".st-key-broken-checks [class*=-fails]"
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
_SWEPT = ("multi-head", "scoring-functions", "sinusoidal-encoding")  # a view, a chart and a heatmap under the mouse

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
# Whether the page listens yet: a term that is pointed at is lit.
_LISTENS = """(links) => {
  const link = document.querySelector(links);
  const tell = (name) => link.dispatchEvent(new PointerEvent(name, { bubbles: true }));
  tell("pointerover");
  const lit = "lit" in link.dataset;
  tell("pointerout");
  return lit;
}"""
# Notes the names of the terms that are lit from now on.
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
# Lower edges of badges where nobody has scrolled.
_BOTTOMS = """(badges) => {
  const main = document.querySelector("[data-testid=stMain]");
  return badges.map((badge) => badge.getBoundingClientRect().bottom + main.scrollTop);
}"""
# Upper edges of the main card's figure, in the shadow of a component too, and of its first control.
_FIRST = """() => {
  const all = (root) => [...root.querySelectorAll("*")]
    .flatMap((each) => [each, ...all(each.shadowRoot ?? new DocumentFragment())]);
  const inside = all(document.querySelector('[class*="st-key-card-"]'));
  const top = (names, least) => inside.filter((each) => each.matches(names)).map((each) => each.getBoundingClientRect())
    .find(({ height }) => height >= least)?.top;
  return { figure: top('[role="application"]', 60) ?? top("[data-drawn]", 60), control: top("input, button", 1) };
}"""


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_fits_links_terms_and_figures_and_shows_what_a_wrong_formula_breaks(
    page: Page, app_url: str, chapter: str
) -> None:
    words = load_words(chapter, "en")
    watch(page)
    page.set_viewport_size(DESK)
    page.goto(f"{app_url}/{chapter}")
    expect(page.get_by_role("heading", level=1, name=words.title)).to_be_visible()
    expect_nothing_jumped(page)
    expect_a_picture_at_once(page)
    steps = page.locator(".st-key-on-the-walk [aria-current=location]")
    expect(steps).to_have_count(len(chapter_entries()[chapter].walk))
    expect_essentials_to_fit(page, words.has("takeaways"))
    expect_no_answer_in_sight(page, words)
    page.set_viewport_size(TALL)
    page.evaluate(_STILL)  # figures draw themselves
    if words.has("takeaways"):
        terms_and_figures_are_linked(page, swept=chapter in _SWEPT)
    page.set_viewport_size(DESK)
    key = words.prefix + ("-break-order" if chapter == "position-embeddings" else "-break")
    go(page, f"/{chapter}?{urlencode({key: words(f'option.{_BROKEN[chapter]}')})}", page.locator(_FAILS))
    shows_what_breaks(page)


def expect_a_picture_at_once(page: Page) -> None:
    """The first picture, or every head as a thumbnail, begins in the upper part of the first screen."""
    main = page.get_by_test_id("stMain")
    drawn = main.locator("[role=figure], [role=application], [data-part=grid], [data-part=stage], .stImage img").first
    expect(drawn).to_be_visible()
    at_once = f"([node, main]) => node.getBoundingClientRect().top + main.scrollTop <= {FIRST_SIGHT}"
    page.wait_for_function(at_once, arg=[drawn.element_handle(), main.element_handle()])  # once the page is drawn wide


def expect_essentials_to_fit(page: Page, teaches: bool) -> None:
    expect(page.locator(".st-key-deeper")).to_be_visible()
    for part in ("definition", "takeaways-fold", "next"):
        expect(page.locator(f"[class*='st-key-{part}']").first).to_be_visible(visible=teaches)
    assert not page.locator(".st-key-deeper details[open]").count(), "sections cost nothing until they are opened"
    expect_rest(page)
    page.evaluate(_STILL)
    found = page.evaluate(_COUNT)
    assert found["end"] <= _SCREENS * DESK["height"], found
    assert found["words"] <= _WORDS, found
    assert not teaches or page.evaluate(_FORMULA_STICKS_OUT) == []


def terms_and_figures_are_linked(page: Page, swept: bool) -> None:
    """By mouse and by keys from the term, by keys from the figure, and where it is swept by the mouse too."""
    links, lit, url = page.locator(_LINKS), page.locator("[data-lit]:not(a)"), page.url
    page.wait_for_function(_LISTENS, arg=_LINKS)
    page.evaluate(_WATCH)
    names = set(links.evaluate_all("links => links.map((link) => link.hash.slice('#part-'.length))"))
    assert len(names) > 1
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
    page.evaluate("globalThis.seenTerms.clear()")
    page.evaluate(_FOCUS_ALL)
    assert seen(page) >= names, "by keyboard"
    if swept:
        sweep(page, page.locator("[class*='st-key-card-']").locator("[role=figure], [role=application]").first)


def seen(page: Page) -> set[str]:
    return set(page.evaluate("[...globalThis.seenTerms]"))


def sweep(page: Page, figure: Locator) -> None:
    """Move the pointer over a figure until it lights a term."""
    page.evaluate("globalThis.seenTerms.clear()")
    box = box_of(figure)
    for place in range(100):
        across, down = place % 10 + 0.5, place // 10 + 0.5
        page.mouse.move(box["x"] + across * box["width"] / 10, box["y"] + down * box["height"] / 10)
        page.wait_for_timeout(15)
        if seen(page):
            return
    raise AssertionError("no term is lit by the mouse")


def shows_what_breaks(page: Page) -> None:
    """Beside the intact figure, whose claims hold, without scrolling."""
    intact = page.locator(".st-key-intact-checks").first
    failing = page.locator(".st-key-broken-checks").first.locator("[class*=-fails]")
    expect(failing.first).to_be_visible()
    expect_rest(page)
    expect(intact.locator("[class*=-fails]")).to_have_count(0)
    expect(intact.locator("[class*=st-key-checks-]").first).to_be_visible()
    for bottom in failing.evaluate_all(_BOTTOMS):
        assert bottom <= DESK["height"], "the failing badge is below the fold"
    figures = [box_of(page.locator(f".st-key-{kind}").first)["y"] for kind in ("intact", "broken")]
    assert figures[0] == figures[1], "the figures do not begin at one height"


# Each page is looked at in one language and one scheme of colours, and chapters with each kind of figure with all their
# sections open. `make languages` looks at all of them, and the contract tests open all sections without a browser.
_OPENED = ("queries-keys-values", "multi-head", "linear-attention", "sinusoidal-encoding", "heads", "atom-mapping")
IN_TURN = list(zip(all_pages(), cycle(languages()), cycle(("light", "light", "dark", "dark")), strict=False))


@pytest.mark.parametrize(("chapter", "language", "scheme"), IN_TURN)
def test_no_chapter_jumps_shows_an_error_or_hides_a_text_or_keeps_somebody_out(
    page: Page, app_url: str, found_in_empty: list[str], chapter: str, language: str, scheme: Scheme
) -> None:
    """At a desk the chapters are opened above, other pages here."""
    words = load_words(chapter, language)
    page.emulate_media(color_scheme=scheme)
    watch(page)
    for size in (PHONE,) if chapter in CHAPTERS else (DESK, PHONE):
        page.set_viewport_size(size)
        page.goto(f"{app_url}/{'' if chapter == 'home' else chapter}?lang={language}")
        expect(page.get_by_role("heading", level=1, name=words.title)).to_be_visible()
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect_nothing_jumped(page)
    if chapter in CHAPTERS:
        expect_no_answer_in_sight(page, words)
        wait_until(page, f"({_FIRST})().figure")
        first = page.evaluate(_FIRST)
        assert 0 < first["control"] < PHONE["height"], first
        assert first["figure"] < PHONE["height"] - VISIBLE, first
        for following in CHAPTERS[CHAPTERS.index(chapter) + 1 :][:1]:
            expect(page.locator(".st-key-next a")).to_have_attribute("href", re.compile(rf"(^|/){following}\b"))
    if chapter in _OPENED:
        open_sheets(page, code=chapter == _OPENED[0])  # one chapter's will do: it is long
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect_texts_to_fit(page)
    page.set_viewport_size(DESK)
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")
    expect_rest(page)
    expect_texts_to_fit(page)
    expect_no_more_than(found_in_empty, page, scheme)
    expect_streamlit_to_speak(page, language)
    expect_keys_to_reach_all(page)


def test_a_link_opens_the_same_view(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/transformer?t-text=I+lost.&head=encoder-self.1.2&pin=q1&look=sort-entropy")
    expect(page.get_by_label("An English sentence")).to_have_value("I lost.")
    expect(page.get_by_role("tab", name="Encoder self")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-part=printName]")).to_have_text("Layer 2, head 3")
    expect(page.get_by_text("Pinned: lost.")).to_be_visible()
    expect(page.get_by_label("Sort by")).to_be_visible()  # chapters fold it until it is used


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
