"""One window for many pages: who goes from chapter to chapter in it loads the app's scripts once.

A test of what a page does as it is loaded opens a window of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from playwright.sync_api import Locator, Page, ViewportSize, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.chromium import window
from tests.browser.page_checks import expect_rest, watch

_TRIES, _WAIT = 3, 15_000  # ms
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
        self._title = ""
        self._errors: list[str] = []
        self._stack = ExitStack()

    @contextmanager
    def at(self, address: str, title: str, size: ViewportSize) -> Iterator[Page]:
        """The window at an address of the app, once its run has ended; an uncaught error in it is a failure.

        Where it is there already, another window is opened: nothing would tell that the new run has come.

        Args:
            title: of the page.
        """
        self._errors.clear()
        failed, self._failed = self._failed, True  # until it has not
        if failed or title == self._title or self._page is None or self._page.is_closed():
            self.close()
            page = self._page = self._open()
            page.set_viewport_size(size)
            page.goto(f"{self._url}/{address}")
            expect(_heading(page, title)).to_be_attached()
        else:
            page = self._page
            page.set_viewport_size(size)
            expect_rest(page)
            self.go(address, _heading(page, title))
        self._title = title
        expect_rest(page)
        yield page
        assert not self._errors, self._errors
        self._failed = False

    def go(self, address: str, sign: Locator) -> None:
        """Go on to another address of the app, where this is attached and was not before.

        Where parts of the page before were still on their way, that may be lost, and a reader would do it again.
        """
        assert self._page
        for _ in range(_TRIES):
            self._page.evaluate(_GO, f"/{address}")
            with suppress(PlaywrightTimeout):
                sign.first.wait_for(state="attached", timeout=_WAIT)
                break
        expect(sign.first).to_be_attached()

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


def _heading(page: Page, title: str) -> Locator:
    """It is there, unseen, beside a figure that is presented too."""
    return page.locator("h1", has_text=re.compile(f"^{re.escape(title)}$"))


@contextmanager
def one_window(url: str) -> Iterator[OneWindow]:
    """A window for the tests of a file, each of which asks for `browser` too, which keeps it open."""
    opened = OneWindow(url)
    try:
        yield opened
    finally:
        opened.close()
