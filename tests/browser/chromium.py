"""One Chromium for all tests in a row that drive one: starting it takes longer than many of them.

While it is open nothing else in this process can run an event loop, so it is closed before any other test.
"""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from benchmarks.serving import CHROMIUM_ARGUMENTS, find_chromium

_open: list[tuple[Playwright, Browser]] = []


def open_browser() -> Browser:
    """The one that is open, or a new one."""
    if not _open:
        path = _find()
        expect.set_options(timeout=60_000)  # a busy machine is no failure
        playwright = sync_playwright().start()
        _open.append((playwright, playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)))
    return _open[0][1]


def close_browser() -> None:
    while _open:
        playwright, browser = _open.pop()
        browser.close()
        playwright.stop()


def _find() -> str:
    found = find_chromium()
    if found is None and os.environ.get("CI"):
        pytest.fail("no Chromium on this machine; the browser tests could not run")
    if found is None:
        pytest.skip("no Chromium on this machine")
    return found
