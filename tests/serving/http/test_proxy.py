"""The shipped proxy before servers that echo: a visitor stays with one, and each limit holds.

What becomes of a page whose server is lost is tested in tests/serving/process/test_processes.py.
"""

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.serving import ROOT, free_port

pytestmark = [
    pytest.mark.attack("proxy"),
    pytest.mark.skipif(shutil.which("haproxy") is None or shutil.which("openssl") is None, reason="no HAProxy here"),
]
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
    """Answers with the headers that it got, and the port of the server that got them; at first not for "/lost"."""

    lost = 0

    def do_GET(self) -> None:
        Echo.lost += self.path == "/lost"
        if self.path == "/lost" and Echo.lost == 1:
            return
        got = {name.lower(): value for name, value in self.headers.items()}
        body = json.dumps(got | {"port": self.server.server_address[1]}).encode()
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
def echo_servers(count: int) -> Iterator[list[ThreadingHTTPServer]]:
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Echo) for _ in range(count)]
    for each in servers:
        threading.Thread(target=each.serve_forever, daemon=True).start()
    yield servers
    for each in servers:
        each.shutdown()


@contextmanager
def proxy(
    folder: Path, certificates: Path, servers: list[ThreadingHTTPServer], changes: Mapping[str, str]
) -> Iterator[tuple[int, int]]:
    """Ports of the shipped proxy, with and without TLS, before these servers."""
    secure, plain = free_port(), free_port()
    written = SHIPPED.read_text(encoding="utf-8").replace("/certs/", f"{certificates}/")
    for shipped, changed in changes.items():
        assert shipped in written
        written = written.replace(shipped, changed)
    places = "\n".join(f"    server s{each.server_port} 127.0.0.1:{each.server_port}" for each in servers)
    written = re.sub(r"^ +server-template.*$", places, written, flags=re.M)
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


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[tuple[int, int]]:
    with echo_servers(1) as servers, proxy(tmp_path_factory.mktemp("shipped"), certificates, servers, {}) as ports:
        yield ports


@pytest.fixture
def small(tmp_path: Path, certificates: Path) -> Iterator[int]:
    """The same limits at small numbers."""
    with echo_servers(1) as servers, proxy(tmp_path, certificates, servers, SMALL) as ports:
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


def visited(port: int, cookie: str = "") -> tuple[int, str]:
    """The server that answers a visitor, and the cookie it is kept by."""
    client = connection(port)
    client.request("GET", "/", headers={"Cookie": cookie} if cookie else {})
    answer = client.getresponse()
    found = answer.headers["Set-Cookie"] or cookie
    return json.loads(answer.read())["port"], found.partition(";")[0]


@pytest.mark.attack("disorder")
def test_a_visitor_stays_with_one_server_and_moves_on_when_it_is_lost(tmp_path: Path, certificates: Path) -> None:
    with echo_servers(2) as servers, proxy(tmp_path, certificates, servers, {}) as (port, _):
        assert len({visited(port)[0] for _ in range(8)}) == 2, "newcomers are shared out"
        mine, cookie = visited(port)
        assert {visited(port, cookie) for _ in range(8)} == {(mine, cookie)}
        (lost,) = (each for each in servers if each.server_port == mine)
        lost.shutdown()
        lost.server_close()
        other, another = visited(port, cookie)
        assert other != mine
        assert another != cookie
        assert {visited(port, another) for _ in range(8)} == {(other, another)}
        assert ask(port, "/lost") == 200, "a request whose server dies is sent again"


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
