"""Chromium for benchmarks: a visitor who counts what comes over the wire, and answers within a time limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright
from playwright.sync_api import TimeoutError as Late

from benchmarks.serving import CHROMIUM_ARGUMENTS, find_chromium

__all__ = ["Late", "Visitor", "chromium", "visit"]

STOPWATCH = Path(__file__).with_name("stopwatch.js")


class Visitor:
    """A page in a window of its own, and the bytes its web sockets have brought."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.received = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self._count))

    def _count(self, payload: str | bytes) -> None:
        self.received += len(payload)

    def within(self, seconds: float, expression: str, argument: Any = None) -> Any:
        """What a JavaScript function of one argument comes to.

        Raises:
            Late: if it does not come to an end in time; the page may hang.
            RuntimeError: if it fails.
        """
        # In braces: a promise that evaluate gets back, it would wait for, without a limit.
        program = """argument => { window.answer = null; setTimeout(() => {
            Promise.resolve(argument).then(EXPRESSION)
                .then(value => { window.answer = { value }; }, error => { window.answer = { error: String(error) }; });
        }); }"""
        self.page.evaluate(program.replace("EXPRESSION", expression), argument)
        self.page.wait_for_function("window.answer !== null", timeout=1000 * seconds, polling=100)
        answer = self.page.evaluate("window.answer")
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def press(self, label: str, key: str, there: str) -> float:
        """Press a key on the slider of this label; seconds until a JavaScript expression holds, and is painted."""
        # In braces: a promise that evaluate gets back, it would wait for.
        self.page.evaluate(f"label => {{ window.timed = atlas.fromKey(label, () => {there}); }}", label)
        self.page.keyboard.press(key)
        return float(self.page.evaluate("window.timed"))

    def move(self, x: float, y: float, there: str) -> float:
        """Move the mouse; seconds until a JavaScript expression holds, and is painted."""
        self.page.evaluate(f"() => {{ window.timed = atlas.fromMove(() => {there}); }}")
        self.page.mouse.move(x, y)
        return float(self.page.evaluate("window.timed"))


@contextmanager
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """The system's Chromium.

    Raises:
        RuntimeError: if there is none.
    """
    path = find_chromium()
    if path is None:
        raise RuntimeError("this benchmark needs Chromium, and found none")
    browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def visit(browser: Browser, url: str, animated: bool = True) -> Iterator[Visitor]:
    """Someone new at this address, with `stopwatch.js` at hand; unless `animated`, who asks for no animations."""
    context = browser.new_context(
        viewport={"width": 1400, "height": 1000}, reduced_motion="no-preference" if animated else "reduce"
    )
    context.add_init_script(path=STOPWATCH)
    visitor = Visitor(context.new_page())
    visitor.page.set_default_timeout(120_000)
    visitor.page.goto(url)
    yield visitor
    context.close()
