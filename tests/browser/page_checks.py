"""What is measured on a page as a browser shows it: texts that nobody can read whole, and what no key reaches."""

import json
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.pages.reading import given_away
from ui.text.words import Words, streamlit_labels

_FITTING, _REACH = (Path(__file__).with_name(name) for name in ("fitting.js", "reach.js"))
# Labels of Streamlit as it writes them: in attributes, and in texts that the page does not write itself.
_LEFT_IN_ENGLISH = """(labels) => {
  const english = new Set(labels), found = [], ours = ".stMarkdown, pre, code, script, style, svg, [role=option]";
  for (const name of ["aria-label", "title", "placeholder"])
    for (const node of document.querySelectorAll(`[${name}]`)) found.push(node.getAttribute(name));
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode()); )
    if (!node.parentElement.closest(ours)) found.push(node.data.trim());
  return found.filter((text) => english.has(text) || english.has(text.split(": ")[0]));
}"""
# What is to be read outside questions, folds and sections, without hints under the pointer.
_IN_SIGHT = """() => {
  const others = '[class*="st-key-exercise-"], .st-key-deeper, .hoverlayer, .predicted-tip, .katex-mathml, style';
  const isSeen = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && node.getBoundingClientRect().width > 2;
  const own = (node) => node.matches("text, p, li, h1, h2, h3") ? [node.textContent]
    : [...node.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data);
  const isRead = (node) => !node.closest(others) && isSeen(node);
  const textsOf = (node) => [...(node.written ?? []).map(({ text }) => text), ...own(node), ...read(node.shadowRoot)];
  const read = (root) => [...(root?.querySelectorAll("*") ?? [])].filter(isRead).flatMap(textsOf);
  return read(document.querySelector("[data-testid=stMain]")).filter((text) => text.trim());
}"""
_GOOD = 0.1  # sum of layout-shift scores (web.dev/cls)
_AFTERWARDS = 500  # ms for the parts that are requested once the page is there
_NOTE_SHIFTS = """
window.shifts = [];
const describe = ({ node }) => (node?.nodeType === 1 ? node : node?.parentElement)?.innerText?.slice(0, 40);
const note = ({ value, sources }) => window.shifts.push([value, sources.map(describe)]);
new PerformanceObserver((list) => list.getEntries().filter((each) => !each.hadRecentInput).forEach(note))
    .observe({ type: "layout-shift", buffered: true });
"""
_GOES = 3
_GO = """(address) => {
  history.pushState(history.state, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
}"""
_TRIES = 120  # a page that has been made narrower is drawn anew: what does not fit at once may, a moment later
_PAUSE = 250  # ms
_MAX_DEPTH = 6  # sheets in a sheet
_EMPTY = "[data-testid=stExpander] details[open]:not(:has([data-testid=stElementContainer], details)):visible"
_NO_CODE = ':not([class*="st-key-"][class*="-code"] *)'


def box_of(place: Locator) -> FloatRect:
    """Where it is in the window; it must be there."""
    box = place.bounding_box()
    assert box, place
    return box


def watch(page: Page) -> None:
    """Note what canvases say, who listens to a mouse and what moves; before the page is opened."""
    for script in (_FITTING, _REACH):
        page.add_init_script(path=script)
    page.add_init_script(_NOTE_SHIFTS)


def expect_nothing_jumped(page: Page) -> None:
    """What a reader sees has stayed where it was since the page was asked for."""
    expect(page.locator("html:not([data-loading])")).to_be_attached()
    expect(page.locator("#while-loading")).to_have_count(0)  # its rules would slow down whatever is drawn
    expect_rest(page)
    page.wait_for_timeout(_AFTERWARDS)
    shifts = page.evaluate("window.shifts")
    assert sum(score for score, _ in shifts) <= _GOOD, shifts


def go(page: Page, address: str, sign: Locator) -> None:
    """Go on to an address of the app, as by the Back button, where this is attached and was not before.

    Where parts of the page before were still on their way, that may be lost, and a reader would do it again.
    """
    for _ in range(_GOES):
        page.evaluate(_GO, address)
        with suppress(PlaywrightTimeout):
            sign.first.wait_for(state="attached", timeout=15_000)
            break
    expect(sign.first).to_be_attached()


def expect_texts_to_fit(page: Page) -> None:
    """No text is cut off, wider than its box or over another, and the page does not move sideways."""
    _expect_none(page, "textsThatDoNotFit()")


def expect_no_answer_in_sight(page: Page, words: Words) -> None:
    """No text of the essentials states an answer, those of charts, components and canvases included."""
    found = given_away(words, page.evaluate(_IN_SIGHT))
    assert found == {}, found


def expect_streamlit_to_speak(page: Page, language: str) -> None:
    """None of Streamlit's own labels and hints is in English on a page in another language."""
    _expect_none(page, f"({_LEFT_IN_ENGLISH})({json.dumps(list(streamlit_labels(language)))})")


def expect_keys_to_reach_all(page: Page) -> None:
    """What of our own components a mouse uses has a key, a name, a role, and a ring around it where the keys are."""
    page.keyboard.press("Shift")  # no ring is shown to who has just used a mouse
    _expect_none(page, "whatNoKeyReaches()")


def _expect_none(page: Page, script: str) -> None:
    found = page.evaluate(script)
    for _ in range(_TRIES):
        if not found:
            return
        page.wait_for_timeout(_PAUSE)
        found = page.evaluate(script)
    raise AssertionError("\n".join(found))


def expect_rest(page: Page) -> None:
    """Nothing runs for this page, nothing of an earlier run is left, and no script is awaited that draws a part."""
    wait_until(page, f"document.querySelector('{_AT_REST}') && !document.querySelector('{_UNFINISHED}')")
    expect(page.locator(_AT_REST)).to_be_attached()
    expect(page.locator(_UNFINISHED)).to_have_count(0)


def wait_until(page: Page, condition: str) -> None:
    """Wait up to a minute for a condition in JavaScript; whoever calls this checks it again, with its own message.

    Playwright's `expect` writes down the whole page at every try that fails, and tries twice a second: on a large page
    that takes longer than what is waited for.
    """
    with suppress(PlaywrightTimeout):
        page.wait_for_function(condition, polling=_POLL, timeout=60_000)


_AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
_UNFINISHED = "[data-stale=true], [data-testid=stSkeleton]"
_POLL = 50  # ms
_CLICK_ALL = "(summaries) => summaries.forEach((summary) => summary.click())"
# Draws each chart and part of the page that waits for somebody to come near, as for paper: without scrolling, which
# takes most of a large page's time (assets/components/shared/mount.js). Returns whether nothing waits any more.
_DRAW_ALL = """() => {
  const waits = (each) => each.checkVisibility() && (each.matches(".chart:not([data-drawn])") || each.style.minHeight);
  const all = [...document.querySelectorAll('[data-testid=stMain] :is(.chart, [class*="st-key-part-"])')];
  const waiting = all.some(waits);
  if (waiting) dispatchEvent(new Event("beforeprint"));
  return !waiting;
}"""


def open_sheets(page: Page, *, code: bool = True) -> None:
    """Everything that is folded, and what is folded in it; without the code, say, which is long.

    Menus stay closed: of two beside each other one is open. All that are closed are opened at once, and then those in
    them: one after the other the page would be drawn anew for each.
    """
    closed = page.get_by_test_id("stMain").locator(
        f"details:not([open], .menu){'' if code else _NO_CODE} > summary:visible"
    )
    for _ in range(_MAX_DEPTH):
        expect_rest(page)
        with suppress(PlaywrightTimeout):
            page.wait_for_function(_DRAW_ALL, polling=500, timeout=60_000)
        expect_rest(page)
        if not closed.count():
            break
        closed.evaluate_all(_CLICK_ALL)
        expect(page.locator(_EMPTY)).to_have_count(0)  # some are filled once they are open
    else:
        raise AssertionError("sheets do not open")
    assert page.evaluate(_DRAW_ALL), "not drawn"


# It is there, or no part of the page in the window still keeps its place (assets/components/lazy_parts).
_NOTHING_WAITS = """(name) => document.querySelector(`[class*="${name}"]`)
  || ![...document.querySelectorAll('[class*="st-key-part-"]')].some((part) => {
    const { top, bottom } = part.getBoundingClientRect();
    return part.style.minHeight && bottom > 0 && top < innerHeight;
  })"""


def chart(page: Page, name: str) -> Locator:
    """The first chart of this name, scrolled to once the page has all come, and drawn."""
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
    place = page.locator(f'[class*="st-key-figure-{name}"]').first
    drawn = place.locator("[data-drawn]")
    for _ in range(60):
        if not place.count():  # it waits for whoever comes near
            page.locator(".stMain").evaluate("main => main.scrollBy(0, main.clientHeight / 2)")
            page.wait_for_function(_NOTHING_WAITS, arg=f"st-key-figure-{name}", timeout=60_000)
            continue
        if _comes(place, drawn):
            return place
    raise AssertionError(f"{name} was not drawn within a minute of being seen")


def _comes(place: Locator, drawn: Locator) -> bool:
    """What comes above, meanwhile, may move it out of sight again."""
    place.scroll_into_view_if_needed()
    try:
        drawn.wait_for(timeout=1_000)
    except PlaywrightTimeout:
        return False
    return True
