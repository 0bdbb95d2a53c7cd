"""One window for many pages: who goes from chapter to chapter in it loads the app's scripts once.

A test of what a page does as it is loaded opens a window of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.chromium import window
from tests.browser.page_checks import expect_rest, watch

# As by the Back button: Streamlit opens the page, and every control takes its value from the address.
_GO = """(address) => {
  history.pushState(history.state, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
}"""


class OneWindow:
    """A window that stays open from test to test; after one that fails the next opens another.

    Args:
        url: of the app.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._page: Page | None = None
        self._failed = False
        self._errors: list[str] = []
        self._stack = ExitStack()

    @contextmanager
    def at(self, address: str, title: str, size: ViewportSize) -> Iterator[Page]:
        """The window at an address of the app, once its run has ended; an uncaught error in it is a failure.

        Args:
            title: of the page, which is another one than the window shows.
        """
        self._errors.clear()
        if self._failed or self._page is None or self._page.is_closed():
            self.close()
            page = self._page = self._open()
            page.set_viewport_size(size)
            page.goto(f"{self._url}/{address}")
        else:
            page = self._page
            page.set_viewport_size(size)
            page.evaluate(_GO, f"/{address}")
        self._failed = True  # until it has not
        expect(page.get_by_role("heading", level=1, name=title, exact=True)).to_be_visible()
        expect_rest(page)
        yield page
        assert not self._errors, self._errors
        self._failed = False

    def close(self) -> None:
        """Close the window, if the browser has not been closed with it."""
        opened = self._page is not None and not self._page.is_closed()
        (self._stack if opened else ExitStack()).close()
        self._stack, self._page = ExitStack(), None

    def _open(self) -> Page:
        page = self._stack.enter_context(window())
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self._errors.append(str(error)))
        watch(page)
        return page


@contextmanager
def one_window(url: str) -> Iterator[OneWindow]:
    """A window for the tests of a file, each of which asks for `browser` too, which keeps it open."""
    opened = OneWindow(url)
    try:
        yield opened
    finally:
        opened.close()
