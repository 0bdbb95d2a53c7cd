"""A public server in two processes of pages: one that dies takes nobody else along."""

import json
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.serving import HOSTED, free_port, start, wait_until_healthy
from serving.process.front import COOKIE, find_haproxy
from tests.attacks.over_http import send_request
from tests.browser.conftest import browser
from viz_core.pretrained import load_translator

__all__ = ["browser"]

pytestmark = [
    pytest.mark.attack("disorder"),
    pytest.mark.skipif(find_haproxy() is None, reason="no HAProxy here, without which one process serves all pages"),
]
SLOW, TIMEOUT = 180_000, 300.0
LINE = "An English sentence"
COUNT = 2


@dataclass(frozen=True)
class Server:
    """The address of a server in two processes, its first process, its log, and the first port of its metrics."""

    url: str
    parent: psutil.Process
    log: Path
    operations: int

    def sessions(self, number: int) -> int:
        """Visitors of one of the processes; -1 where it does not answer."""
        address = f"http://127.0.0.1:{self.operations + number}/metrics"
        with suppress(OSError), urllib.request.urlopen(address, timeout=60) as answer:
            return int(float(re.findall(r"^atlas_sessions (\S+)$", answer.read().decode(), re.M)[0]))
        return -1

    def process(self, number: int) -> psutil.Process:
        """The process of pages that serves these metrics."""
        for child in self.parent.children():
            if any(one.laddr.port == self.operations + number for one in child.net_connections()):
                return child
        raise AssertionError(f"no process {number}")


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def free_ports(count: int) -> int:
    """The first of free ports that follow each other."""
    while True:
        port = free_port()
        with suppress(OSError, OverflowError), ExitStack() as until:
            for number in range(port, port + count):
                until.enter_context(socket.socket()).bind(("127.0.0.1", number))
            return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, operations = tmp_path_factory.mktemp("processes"), free_ports(COUNT + 1)
    settings = {"ATLAS_PROCESSES": str(COUNT), "ATLAS_WORKERS": "1", "ATLAS_METRICS": f"127.0.0.1:{operations}"}
    process, url = start(folder, HOSTED, settings)
    log = folder / "server.log"
    try:
        for number in range(COUNT):
            wait_until_healthy(f"http://127.0.0.1:{operations + number}", process, log, "/readyz")
        wait_until_healthy(url, process, log, "/readyz")
        yield Server(url, psutil.Process(process.pid), log, operations)
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def at(browser: Browser, server: Server, number: int) -> Iterator[Page]:
    """A window of a browser that has been to this process before."""
    context = browser.new_context()
    context.add_cookies([{"name": COOKIE, "value": str(number), "url": server.url}])
    page = context.new_page()
    page.set_default_timeout(SLOW)
    yield page
    context.close()


def expect_translation(page: Page, text: str) -> None:
    made = load_translator("transformer-en-fr", device="cpu").translate(text)
    expect(page.get_by_role("heading", name=made.text)).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)


def test_visitors_of_a_process_that_is_killed_go_on_with_another(browser: Browser, server: Server) -> None:
    closed: list[str] = []
    with at(browser, server, 0) as page, at(browser, server, 1) as other:
        other.on("websocket", lambda found: found.on("close", lambda _: closed.append(found.url)))
        for each in (page, other):
            each.goto(f"{server.url}/transformer?head=cross.1.3")
            each.get_by_role("textbox", name=LINE).fill("I lost my way.")
            each.get_by_role("textbox", name=LINE).press("Enter")
            expect_translation(each, "I lost my way.")
        page.get_by_role("textbox", name=LINE).fill("I lost my bag.")  # typed, and not sent yet
        killed = server.process(0)
        killed.kill()
        status, headers, _ = send_request(server.url, "GET", "/healthz", headers={"Cookie": f"{COOKIE}=0"})
        assert (status, f"{COOKIE}=1" in headers["set-cookie"]) == (200, True), "another answers, and keeps the browser"
        wait_until(lambda: server.sessions(0) + server.sessions(1) == 2)  # by then there may be a new one
        expect(page.get_by_role("textbox", name=LINE)).to_have_value("I lost my bag.")
        page.get_by_role("textbox", name=LINE).press("Enter")
        expect_translation(page, "I lost my bag.")
        assert "head=cross.1.3" in page.url
        assert closed == []
        expect(other.get_by_role("textbox", name=LINE)).to_have_value("I lost my way.")
        wait_until(lambda: server.sessions(0) >= 0)
        assert server.process(0).pid != killed.pid


def test_all_processes_end_when_the_first_is_terminated(server: Server) -> None:
    everyone = server.parent.children(recursive=True)
    assert len(everyone) >= COUNT + 3
    server.parent.terminate()
    assert server.parent.wait(TIMEOUT) == -signal.SIGTERM
    assert psutil.wait_procs(everyone, TIMEOUT)[1] == []
    events = [json.loads(line)["event"] for line in server.log.read_text().splitlines() if line.startswith("{")]
    assert events.count("stopped") == COUNT
    assert events.count("a process has ended and is started again") == 1
