"""Charts as a reader comes to them: they are drawn once they are near."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as TooLate

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


def scroll_to(place: Locator, drawn: Locator) -> None:
    """Scroll to a place until what is drawn there for whoever is near is visible."""
    if not any(_comes(place, drawn) for _ in range(60)):
        raise AssertionError(f"{drawn} was not drawn within a minute of being near")


def _comes(place: Locator, drawn: Locator) -> bool:
    """What comes above, meanwhile, may move it out of sight again."""
    place.scroll_into_view_if_needed()
    try:
        drawn.wait_for(timeout=1_000)
    except TooLate:
        return False
    return True
