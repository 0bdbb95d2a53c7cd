"""One Chromium for all tests in a row that drive one: starting it takes longer than many of them.

While it is open nothing else in this process can run an event loop, so it is closed before any other test.
All windows of one site share a process, which lives as long as one of them is open: the next window finds the scripts
there, compiled. A third of what opening a page costs is saved so.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, expect, sync_playwright

from benchmarks.serving import CHROMIUM_ARGUMENTS, find_chromium

NO_CHROMIUM = "no Chromium on this machine"
"""Why a test is skipped (tests/conftest.py counts them); continuous integration fails instead."""

_open: list[tuple[Playwright, Browser, BrowserContext]] = []


def open_browser() -> Browser:
    """The one that is open, or a new one."""
    if not _open:
        expect.set_options(timeout=60_000)  # a busy machine is not a failure
        playwright = sync_playwright().start()
        browser = _launch(playwright)
        _open.append((playwright, browser, _new_context(browser)))
    return _open[0][1]


@contextmanager
def window() -> Iterator[Page]:
    """A wide window that knows nothing but the scripts that others have loaded: these are parsed once."""
    open_browser()
    context = _open[0][2]
    yield context.new_page()
    _forget(context)


def _new_context(browser: Browser) -> BrowserContext:
    """With an empty window that stays, at the address of every server of ours but for the port.

    Nothing shimmers while it loads: it would be drawn sixty times a second, by the processor.
    """
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    empty = context.new_page()
    empty.route("**/*", lambda route: route.fulfill(body=""))
    empty.goto("http://127.0.0.1/")
    return context


def _forget(context: BrowserContext) -> None:
    """Close all windows but the empty one, and leave nothing to the next test but what the network's cache holds."""
    for page in context.pages[1:]:
        session = context.new_cdp_session(page)
        session.send("Storage.clearDataForOrigin", {"origin": page.url, "storageTypes": "local_storage,indexeddb"})
        page.close()
    context.clear_cookies()
    context.clear_permissions()


def close_after_its_tests(config: pytest.Config) -> None:
    """Close the browser before the first test that does not drive it, and at the end."""
    if not config.pluginmanager.has_plugin("close-browser"):
        config.pluginmanager.register(_Closing(), "close-browser")


class _Closing:
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if "browser" not in getattr(item, "fixturenames", ()):
            close_browser()

    def pytest_sessionfinish(self) -> None:
        close_browser()


def close_browser() -> None:
    while _open:
        playwright, browser, _ = _open.pop()
        browser.close()
        playwright.stop()


def _launch(playwright: Playwright) -> Browser:
    """The system's Chromium, or the one that playwright has installed."""
    path = find_chromium()
    try:
        return playwright.chromium.launch(executable_path=path, args=[*CHROMIUM_ARGUMENTS, "--process-per-site"])
    except Error:
        playwright.stop()
        if path is not None:
            raise
        if os.environ.get("CI"):
            pytest.fail(NO_CHROMIUM)
        pytest.skip(NO_CHROMIUM)
