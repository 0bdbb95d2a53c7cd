"""The shipped proxy before the hosted server: pages pass, and each limit holds."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from benchmarks.serving import HOSTED, ROOT, Server, free_port, running, wait_until_healthy
from tests.browser.conftest import browser, page

__all__ = ["browser", "page"]

pytestmark = [
    pytest.mark.attack("proxy"),
    pytest.mark.skipif(shutil.which("haproxy") is None or shutil.which("openssl") is None, reason="no HAProxy here"),
]
SLOW = 180_000
PROTOCOL = Subprotocol("streamlit")
LINE = "An English sentence"


@dataclass(frozen=True)
class Proxied:
    """The proxy's address, the servers behind it by name, and where they tell their metrics."""

    url: str
    servers: dict[str, Server]
    counts: dict[str, str]


@contextmanager
def behind_proxy(folder: Path, *servers: Server) -> Iterator[str]:
    """The address of the shipped proxy, without TLS, before these servers."""
    address = f"127.0.0.1:{free_port()}"
    written = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
    places = [f"    server s{number} {each.url.removeprefix('http://')}" for number, each in enumerate(servers)]
    for shipped, changed in (
        (r"^ +server-template.*$", "\n".join(places)),
        (r"^frontend unencrypted\n(?: .*\n)+", ""),
        (r"(?:^ +bind .*\n)+", f"    bind {address}\n"),
        (r"X-Forwarded-Proto https", "X-Forwarded-Proto http"),
        (r" secure ", " "),
    ):
        written = re.sub(shipped, changed, written, flags=re.M)
    (folder / "haproxy.cfg").write_text(written, encoding="utf-8")
    log = folder / "haproxy.log"
    with log.open("wb") as output:
        command = ["haproxy", "-f", str(folder / "haproxy.cfg")]
        proxy = subprocess.Popen(command, env=os.environ | {"HOSTNAME": "proxy"}, stdout=output, stderr=output)
    try:
        wait_until_healthy(f"http://{address}", proxy, log, "/readyz")
        yield f"http://{address}"
    finally:
        proxy.terminate()
        proxy.wait(timeout=30)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """The shipped configuration without TLS, which is tried below, and with the servers of the test."""
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
        yield Proxied(stack.enter_context(behind_proxy(tmp_path, *servers.values())), servers, counts)


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


SHIPPED = ROOT / "deploy" / "haproxy.cfg"
SMALL = {"sc0_conn_cur gt 1000": "sc0_conn_cur gt 5", "sc1_http_req_rate gt 500": "sc1_http_req_rate gt 5"}
SMALL |= {"sc2_http_req_rate gt 200": "sc2_http_req_rate gt 5", "sc0_http_req_rate gt 20000": "sc0_http_req_rate gt 60"}
FORGED = {
    "X-Forwarded-For": "203.0.113.9",
    "x-forwarded-proto": "http",
    "X-Forwarded-Host": "evil.example",
    "X-Real-IP": "203.0.113.9",
    "Forwarded": "for=203.0.113.9",
}


class Echo(BaseHTTPRequestHandler):
    """Answers with the headers that it got."""

    def do_GET(self) -> None:
        body = json.dumps({name.lower(): value for name, value in self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET  # noqa: N815  # named by http.server

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    key, certificate = folder / "key", folder / "certificate"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "pem").mkdir()
    (folder / "pem" / "atlas.pem").write_text(certificate.read_text() + key.read_text())
    return folder / "pem"


@contextmanager
def proxy(folder: Path, certificates: Path, changes: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Ports of the shipped proxy, with and without TLS, before a server that echoes."""
    echo = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=echo.serve_forever, daemon=True).start()
    secure, plain = free_port(), free_port()
    written = SHIPPED.read_text(encoding="utf-8").replace("/certs/", f"{certificates}/")
    for shipped, changed in changes.items():
        assert shipped in written
        written = written.replace(shipped, changed)
    written = re.sub(r"^ +server-template.*$", f"    server one 127.0.0.1:{echo.server_port}", written, flags=re.M)
    written = written.replace(":8443", f":{secure}").replace(":8080", f":{plain}")
    (folder / "haproxy.cfg").write_text(written, encoding="utf-8")
    running = subprocess.Popen(["haproxy", "-f", str(folder / "haproxy.cfg")], env=os.environ | {"HOSTNAME": "proxy"})
    try:
        for _ in range(600):
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", secure), timeout=1).close()
                break
            assert running.poll() is None
            time.sleep(0.1)
        yield secure, plain
    finally:
        running.terminate()
        running.wait(timeout=60)
        echo.shutdown()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[tuple[int, int]]:
    with proxy(tmp_path_factory.mktemp("shipped"), certificates, {}) as ports:
        yield ports


@pytest.fixture
def small(tmp_path: Path, certificates: Path) -> Iterator[int]:
    """The same limits at small numbers."""
    with proxy(tmp_path, certificates, SMALL) as ports:
        yield ports[0]


def connection(port: int, host: str = "127.0.0.1") -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(host, port, timeout=60, context=ssl._create_unverified_context())


def ask(port: int, path: str = "/", method: str = "GET", headers: Mapping[str, str] | None = None) -> int:
    client = connection(port)
    client.request(method, path, headers=dict(headers or {}))
    try:
        return client.getresponse().status
    finally:
        client.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_a_visitor_says_of_addresses_is_not_believed(host: str, shipped: tuple[int, int]) -> None:
    client = connection(shipped[0], host)
    client.request("GET", "/", headers=FORGED)
    answer = client.getresponse()
    got = json.loads(answer.read())
    assert got["x-forwarded-for"] == host
    assert got["x-forwarded-proto"] == "https"
    assert got.keys().isdisjoint({"x-forwarded-host", "x-real-ip", "forwarded"})
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    cookie = answer.headers["Set-Cookie"]
    assert all(word in cookie for word in ("ATLAS=", "Secure", "HttpOnly", "SameSite=Lax"))
    assert ask(shipped[0], "/_stcore/upload_file/a/b", "PUT", {"Content-Length": str(12 * 2**20)}) == 413


def test_without_tls_a_browser_is_sent_to_it(shipped: tuple[int, int]) -> None:
    client = http.client.HTTPConnection("127.0.0.1", shipped[1], timeout=60)
    client.request("GET", "/transformer?x=1", headers={"Host": "atlas.example"})
    answer = client.getresponse()
    assert (answer.status, answer.headers["Location"]) == (301, "https://atlas.example/transformer?x=1")


def test_old_tls_is_refused(shipped: tuple[int, int]) -> None:
    context = ssl._create_unverified_context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, OSError)), socket.create_connection(("127.0.0.1", shipped[0])) as plain:
        context.wrap_socket(plain)


@pytest.mark.parametrize(("path", "method"), [("/_stcore/stream", "GET"), ("/_stcore/upload_file/a/b", "PUT")])
def test_too_many_pages_or_uploads_of_an_address_are_refused(path: str, method: str, small: int) -> None:
    found = [ask(small, path, method) for _ in range(8)]
    assert found == [200] * 5 + [429] * 3
    assert ask(small) == 200


def test_too_many_requests_of_an_address_are_refused(small: int) -> None:
    client, found = connection(small), []
    for _ in range(80):
        client.request("GET", "/")
        answer = client.getresponse()
        answer.read()
        found.append(answer.status)
    assert found == [200] * 60 + [429] * 20


def test_too_many_connections_of_an_address_are_closed(small: int) -> None:
    open_ones = [connection(small) for _ in range(5)]
    for one in open_ones:
        one.connect()
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(small)
    open_ones.pop().close()
    for _ in range(100):
        with suppress(OSError, http.client.HTTPException):
            assert ask(small) == 200
            return
        time.sleep(0.1)
    raise AssertionError("no connection though one was closed")
