"""The proxy of the compose file before two real servers: a visitor stays with one, and moves on when it is lost."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from benchmarks.serving import HOSTED, ROOT, Server, free_port, running, wait_until_healthy
from tests.browser.conftest import browser, page

__all__ = ["browser", "page"]

SLOW = 180_000
PROTOCOL = Subprotocol("streamlit")
LINE = "An English sentence"
pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy on this machine")


@dataclass(frozen=True)
class Proxied:
    """The proxy's address, the servers behind it by name, and where they tell their metrics."""

    url: str
    servers: dict[str, Server]
    counts: dict[str, str]


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """The shipped configuration without TLS, which test_proxy_limits.py has, and with the servers of the test."""
    tmp_path = tmp_path_factory.mktemp("proxied")
    secret = {"STREAMLIT_SERVER_COOKIE_SECRET": "one secret for all replicas", "ATLAS_WORKERS": "0"}
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        counts: dict[str, str] = {}
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            counts[name] = f"127.0.0.1:{free_port()}"
            settings = secret | {"ATLAS_METRICS": counts[name]}
            servers[name] = stack.enter_context(running(tmp_path / name, HOSTED, settings))
        address = f"127.0.0.1:{free_port()}"
        shipped = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
        places = "\n".join(f"    server {name} {s.url.removeprefix('http://')}" for name, s in servers.items())
        written = re.sub(r"^ +server-template.*$", places, shipped, flags=re.M)
        written = re.sub(r"^frontend unencrypted\n(?: .*\n)+", "", written, flags=re.M)
        written = re.sub(r"(?:^ +bind .*\n)+", f"    bind {address}\n", written, flags=re.M)
        written = written.replace("X-Forwarded-Proto https", "X-Forwarded-Proto http").replace(" secure ", " ")
        (tmp_path / "haproxy.cfg").write_text(written, encoding="utf-8")
        log = tmp_path / "haproxy.log"
        with log.open("wb") as output:
            command = ["haproxy", "-f", str(tmp_path / "haproxy.cfg")]
            environment = os.environ | {"HOSTNAME": "proxy"}
            proxy = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until_healthy(f"http://{address}", proxy, log, "/readyz")
            yield Proxied(f"http://{address}", servers, counts)
        finally:
            proxy.terminate()
            proxy.wait(timeout=30)


def sessions(counts: str) -> int:
    """Visitors of one server, asked behind the proxy's back."""
    with urllib.request.urlopen(f"http://{counts}/metrics", timeout=60) as answer:
        found = re.search(r"^atlas_sessions (\S+)$", answer.read().decode(), re.M)
    assert found
    return int(float(found[1]))


def wait_for_sessions(counts: str, at_least: int) -> None:
    for _ in range(600):
        if sessions(counts) >= at_least:
            return
        time.sleep(0.1)
    raise AssertionError(f"{sessions(counts)} sessions; expected {at_least}")


@contextmanager
def windows(url: str, cookie: str, count: int) -> Iterator[None]:
    """More of one visitor, open at once: shared out by their number, half would come to the other server."""
    address = f"{url.replace('http', 'ws', 1)}/_stcore/stream"
    with ExitStack() as stack:
        for _ in range(count):
            headers = {"Cookie": f"ATLAS={cookie}"}
            stack.enter_context(connect(address, additional_headers=headers, subprotocols=[PROTOCOL], proxy=None))
        yield


def cookie(page: Page) -> str:
    return next(one["value"] for one in page.context.cookies() if one["name"] == "ATLAS")


def script_of(url: str) -> str:
    """The address of the front end's script, as its page names it."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        found = re.search(r'src="\./?([^"]+\.js)"', answer.read().decode())
    assert found
    return f"{url}/{found[1]}"


def test_scripts_come_packed_and_whole(proxied: Proxied) -> None:
    script = script_of(proxied.url)
    with urllib.request.urlopen(script, timeout=60) as answer:
        plain = answer.read()
    request = urllib.request.Request(script, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        packed = answer.read()
    assert gzip.decompress(packed) == plain
    assert len(packed) < len(plain) / 2


@pytest.mark.attack("disorder")
def test_a_visitor_stays_with_one_server_and_moves_on_when_it_is_lost(page: Page, proxied: Proxied) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{proxied.url}/_stcore/metrics", timeout=60)

    page.goto(f"{proxied.url}/transformer?t-text=I+lost+my+bag.&head=cross.1.3")
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    mine = cookie(page)
    at_first = [name for name, counts in proxied.counts.items() if sessions(counts)]
    assert len(at_first) == 1
    page.reload()
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    assert cookie(page) == mine
    (here,) = at_first
    (there,) = proxied.servers.keys() - {here}
    with windows(proxied.url, mine, 4):
        wait_for_sessions(proxied.counts[here], 5)
        assert sessions(proxied.counts[there]) == 0

    os.kill(proxied.servers[here].pid, signal.SIGKILL)
    page.get_by_role("textbox", name=LINE).fill("I lost my way.")  # whoever types while it dies
    page.get_by_role("textbox", name=LINE).press("Enter")
    page.reload()
    expect(page.get_by_role("textbox", name=LINE)).to_have_value(re.compile(r"I lost my (bag|way)\."), timeout=SLOW)
    expect(page.get_by_role("application").first).to_be_visible(timeout=SLOW)
    assert "head=cross.1.3" in page.url
    assert cookie(page) != mine
    assert sessions(proxied.counts[there]) == 1
