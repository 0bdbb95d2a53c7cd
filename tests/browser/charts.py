"""Charts as a reader comes to them: they are drawn once they are near."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def chart(page: Page, name: str) -> Locator:
    """The first chart of this name, scrolled to once the page has all come, and drawn."""
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
    place = page.locator(f'[class*="st-key-figure-{name}"]').first
    place.scroll_into_view_if_needed()
    expect(place.locator("[data-drawn]")).to_be_visible()
    return place
