"""A Streamlit server of our own and a Chromium to look at it, for benchmarks and browser tests alike."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright

ROOT = Path(__file__).resolve().parents[1]
NO_SETTINGS: Mapping[str, str] = {}
STOPWATCH = Path(__file__).with_name("stopwatch.js")
HOSTED = "hosted.py"  # starts itself, under the profile for strangers
CHROMIUM_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
HEADLESS_SHELL = "chromium-headless-shell"
"""The same engine without a window: a new one loads three hundred scripts of its own beside a page's first second."""


def find_chromium() -> str | None:
    """The system's Chromium or Chrome, or None; without a window where there is such a one."""
    names = (HEADLESS_SHELL, "chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@dataclass(frozen=True)
class Server:
    """A server that answers: its address and its process."""

    url: str
    pid: int


@contextmanager
def serve(folder: Path, script: str = "app.py") -> Iterator[str]:
    """A Streamlit script of this repository, or HOSTED, on a free port, and its address; the log goes to `folder`.

    RuntimeError if the server stops or does not come up; the message holds its log.
    """
    with running(folder, script) as server:
        yield server.url


@contextmanager
def running(folder: Path, script: str = "app.py", settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[Server]:
    """The same with its process, and with settings (ATLAS_ variables) of its own. Raises as `serve` does."""
    server, url = start(folder, script, settings)
    try:
        wait_until_healthy(url, server, folder / "server.log")
        yield Server(url, server.pid)
    finally:
        server.terminate()
        server.wait(timeout=30)


def start(
    folder: Path, script: str = "app.py", settings: Mapping[str, str] = NO_SETTINGS
) -> tuple[subprocess.Popen[bytes], str]:
    """The process of a server that is still starting, and where it will be; the log is `server.log` in `folder`."""
    port = free_port()
    options = {"SERVER_HEADLESS": "true", "SERVER_PORT": str(port), "SERVER_ADDRESS": "127.0.0.1"}
    options["SERVER_FILE_WATCHER_TYPE"] = "none"
    environment = os.environ | {f"STREAMLIT_{name}": value for name, value in options.items()} | settings
    command = [script] if script == HOSTED else ["-m", "streamlit", "run", script]
    with (folder / "server.log").open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    return server, f"http://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path, route: str = "/_stcore/health") -> None:
    """Until `route` answers 200. RuntimeError if the server stops or does not come up; the message holds its log."""
    for _ in range(2400):
        if server.poll() is not None:
            raise RuntimeError(f"the server stopped: {log.read_text()}")
        try:
            with urllib.request.urlopen(f"{url}{route}", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server did not come up: {log.read_text()}")


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

        Late if it does not come to an end in time; the page may hang. RuntimeError if it fails.
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


@contextmanager
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """The system's Chromium. RuntimeError if there is none."""
    path = find_chromium()
    if path is None:
        raise RuntimeError("this benchmark needs Chromium, and found none")
    browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def visit(browser: Browser, url: str, animated: bool = True, width: int = 1400) -> Iterator[Visitor]:
    """Someone new at this address, with `stopwatch.js` at hand; unless `animated`, who asks for no animations."""
    context = browser.new_context(
        viewport={"width": width, "height": 1000}, reduced_motion="no-preference" if animated else "reduce"
    )
    context.add_init_script(path=STOPWATCH)
    visitor = Visitor(context.new_page())
    visitor.page.set_default_timeout(120_000)
    visitor.page.goto(url)
    yield visitor
    context.close()
