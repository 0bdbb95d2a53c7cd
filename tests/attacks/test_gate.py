"""What reaches Streamlit at all: whose page, by which name, from which address, and in whose session.

The servers cannot reach any other machine, and say so if one of them tries. The hosted one listens on `::`, as it does
by itself, so that a proxy on IPv4 has an address of IPv6.
"""

from __future__ import annotations

import asyncio
import http.client
import shutil
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from benchmarks.serving import HOSTED, Server, free_port, running
from benchmarks.visitors import Visitor, visit
from tests.attacks import no_way_out
from tests.attacks.over_http import FOREIGN, FORM, multipart, send_request

TIMEOUT = 120.0
CHAPTERS = ("home", "sinusoidal-encoding", "transformer", "vision-transformer", "model-lab")
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


@dataclass(frozen=True)
class Gated:
    """A server without a way out."""

    url: str
    log: Path
    attempts: Path
    operations: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc


def without_way_out(folder: Path) -> dict[str, str]:
    shutil.copy(str(no_way_out.__file__), folder / "sitecustomize.py")
    return {"PYTHONPATH": str(folder), "ATTEMPTS": str(folder / "attempts")}


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    folder = tmp_path_factory.mktemp("hosted")
    operations = f"127.0.0.1:{free_port()}"
    settings = {"ATLAS_WORKERS": "0", "ATLAS_MAX_WINDOWS": "2", "ATLAS_METRICS": operations}
    settings |= {"STREAMLIT_SERVER_ADDRESS": "", "STREAMLIT_SERVER_ALLOWED_HOSTS": '["atlas.example", "127.0.0.1"]'}
    settings |= without_way_out(folder)
    with running(folder, HOSTED, settings) as server:
        yield Gated(server.url, folder / "server.log", folder / "attempts", f"http://{operations}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    folder = tmp_path_factory.mktemp("home")
    with running(folder, "app.py", without_way_out(folder)) as server:
        yield Gated(server.url, folder / "server.log", folder / "attempts")


def handshake(url: str, host: str, origin: str) -> int:
    """The status that a page of another site gets."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT)
    try:
        connection.request("GET", "/_stcore/stream", headers=UPGRADE | {"Host": host, "Origin": origin})
        return connection.getresponse().status
    finally:
        connection.close()


def cookie_of(server: Gated) -> str:
    """The cookie of a new browser."""
    return send_request(server.url, "GET", "/_stcore/health")[1]["set-cookie"].partition(";")[0]


def in_time(test: Coroutine[Any, Any, None]) -> None:
    async def run() -> None:
        async with asyncio.timeout(TIMEOUT):
            await test

    asyncio.run(run())


@asynccontextmanager
async def entered(server: Gated, address: str, cookie: str = "", resume: str = "") -> AsyncIterator[Visitor]:
    """A visitor with a page, behind a proxy on IPv4."""
    headers = {"X-Forwarded-For": address} | ({"Cookie": cookie} if cookie else {})
    async with visit(server.url, TIMEOUT, headers=headers, resume=resume) as visitor:
        await visitor.open("sinusoidal-encoding")
        yield visitor


@pytest.mark.attack("cross-site")
def test_a_page_of_another_site_is_refused_before_streamlit_sees_it(hosted: Gated) -> None:
    others = "http://localhost:1234 http://127.0.0.1 http://0.0.0.0:80 null https://8.8.8.8".split()
    for origin in (FOREIGN, *others):
        assert [handshake(hosted.url, hosted.host, origin) for _ in range(10)] == [403] * 10
        assert handshake(hosted.url, hosted.host, hosted.url) == 101
    assert "elsewhere.example" not in hosted.log.read_text()
    for path in ("/_stcore/health", "/media/none.png"):
        headers = send_request(hosted.url, "GET", path, headers={"Origin": FOREIGN})[1]
        assert headers.get("access-control-allow-origin") not in ("*", FOREIGN), "another site reads nothing"


@pytest.mark.attack("cross-site")
def test_a_server_answers_to_the_names_it_is_given(hosted: Gated, home: Gated) -> None:
    """A name that another site points here opens nothing: to the browser it is all one site (DNS rebinding)."""
    rebound = f"evil.example:{urlsplit(home.url).port}"
    for server, host, known in (
        (home, rebound, False),
        (home, home.host, True),
        (hosted, "evil.example", False),
        (hosted, "atlas.example", True),
    ):
        assert handshake(server.url, host, f"http://{host}") == (101 if known else 403)
        assert send_request(server.url, "GET", "/", headers={"Host": host})[0] == (200 if known else 403)
    assert handshake(home.url, home.host, FOREIGN) == 403


@pytest.mark.attack("connections")
def test_visitors_behind_a_proxy_on_ipv4_are_counted_one_by_one(hosted: Gated) -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            for number in range(4):
                await stack.enter_async_context(entered(hosted, f"10.0.0.{number % 2 + 1}"))
            with pytest.raises(InvalidStatus, match="503"):
                await stack.enter_async_context(entered(hosted, "10.0.0.1"))
            await stack.enter_async_context(entered(hosted, "10.0.0.3"))

    in_time(test())


@pytest.mark.attack("headers")
def test_a_proxy_on_ipv4_is_believed_that_a_visitor_came_by_tls(hosted: Gated) -> None:
    headers = send_request(hosted.url, "GET", "/_stcore/health", headers={"X-Forwarded-Proto": "https"})[1]
    assert "; secure" in headers["set-cookie"].lower()
    assert headers["strict-transport-security"].startswith("max-age=")


@pytest.mark.attack("sessions")
def test_a_session_is_not_taken_by_who_knows_its_id(hosted: Gated) -> None:
    async def test() -> None:
        mine = cookie_of(hosted)
        async with entered(hosted, "10.0.1.1", mine) as owner:
            for number, cookie in enumerate(("", cookie_of(hosted))):
                async with entered(hosted, f"10.0.1.{number + 2}", cookie, owner.session) as thief:
                    assert thief.session != owner.session
            shown = await owner.open("sinusoidal-encoding")
            assert shown.texts, "its owner goes on"
            session = owner.session
            headers = {"Cookie": cookie_of(hosted), "X-Forwarded-For": "10.0.1.9"}
            token = headers["Cookie"].partition("=")[2]
            path = f"/_stcore/upload_file/{session}/{session}"
            assert send_request(hosted.url, "PUT", path, b"", headers | {"X-Xsrftoken": token})[0] == 403
            async with entered(hosted, "10.0.1.1", mine, session) as again:
                assert again.session == session, "whose connection was lost comes back, even before that is noticed"
        assert session not in hosted.log.read_text()

    in_time(test())


@pytest.mark.attack("requests")
@pytest.mark.parametrize("name", ["hosted", "home"])
def test_no_request_leaves_the_server(name: str, request: pytest.FixtureRequest) -> None:
    """While its pages are visited; only a model that somebody names in the lab is looked for elsewhere."""
    server: Gated = request.getfixturevalue(name)

    async def test() -> None:
        async with visit(server.url, TIMEOUT, headers={"X-Forwarded-For": "10.0.2.1"}) as visitor:
            for chapter in CHAPTERS:
                assert (await visitor.open(chapter)).texts

    in_time(test())
    assert not server.attempts.exists(), server.attempts.read_text()


@pytest.mark.attack("connections")
def test_health_is_answered_apart_from_the_pages(hosted: Gated) -> None:
    assert send_request(hosted.operations, "GET", "/healthz")[2] == b"ok"
    text = send_request(hosted.operations, "GET", "/metrics")[2].decode()
    assert "atlas_event_loop_lag_seconds " in text
    assert send_request(hosted.url, "GET", "/healthz")[2] == b"ok"


# Words of files that lie on the server and are nobody's business.
SECRETS = (b"root:x:", b"[tool.pytest", b"class Settings", b"requires-python", b"[boot loader]")
ROUTES = ("", "/static", "/media", "/component", "/component/atlas", "/_stcore/bidi-components", "/app/static")
CLIMBS = (
    "/../pyproject.toml",
    "/../../../../../../etc/passwd",
    "/..%2f..%2f..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/%252e%252e%252fetc%252fpasswd",
    "/....//....//etc/passwd",
    "/..%5c..%5cpyproject.toml",
    "//etc/passwd",
    "/..;/pyproject.toml",
    "/%00/etc/passwd",
    "/file:///etc/passwd",
    "/serving/settings.py",
    "/.git/config",
)
UPLOAD = "/_stcore/upload_file/no-such-session/no-such-file"
MADE_UP = {"X-Xsrftoken": "1", "Cookie": "_streamlit_xsrf=1"}
REQUESTS: dict[str, tuple[Any, ...]] = {
    "TRACE": ("TRACE", "/"),
    "DELETE of an upload": ("DELETE", "/_stcore/upload_file/a/b"),
    "POST of 1 MB": ("POST", "/", b"x" * 2**20),
    "a path of 60,000 signs": ("GET", "/" + "a" * 60_000),
    "a header of 100,000 signs": ("GET", "/", None, {"X-Long": "x" * 100_000}),
    "an upload without a token": ("PUT", UPLOAD, multipart(1000), FORM),
    "an upload with a made-up token": ("PUT", UPLOAD, multipart(1000), FORM | MADE_UP),
    "an upload from another site": ("PUT", UPLOAD, multipart(1000), FORM | {"Origin": FOREIGN}),
    "30 MB into a session that is not there": ("PUT", UPLOAD, multipart(30 * 2**20), FORM),
}
MESSAGES: dict[str, bytes | str] = {
    "random bytes": bytes(range(256)) * 8,
    "text where bytes are expected": "<script>alert(1)</script>",
    "an empty message": b"",
    "a field that claims 2 GB": b"\x5a\xff\xff\xff\xff\x07",
    "25 MB at once": b"\0" * (25 * 2**20),
    "a thousand nonsense messages": b"\x08\x01",
}


@pytest.fixture(autouse=True)
def stands(server: Server) -> Iterator[None]:
    yield
    assert send_request(server.url, "GET", "/_stcore/health")[0] == 200


def refused(url: str, method: str, path: str, body: bytes | None = None, headers: Any = None) -> None:
    with suppress(ConnectionError, http.client.HTTPException):  # the connection may be closed
        status, _, content = send_request(url, method, path, body, headers)
        assert not any(secret in content for secret in SECRETS), content[:200]
        own_page = status == 200 and b'<div id="root">' in content
        assert own_page or 400 <= status < 500, (path[:100], status, content[:200])


@pytest.mark.attack("files")
@pytest.mark.parametrize("route", ROUTES)
def test_no_path_climbs_out(route: str, server: Server) -> None:
    for climb in CLIMBS:
        refused(server.url, "GET", route + climb)


@pytest.mark.attack("requests")
@pytest.mark.parametrize("what", REQUESTS)
def test_a_forged_request_is_refused(what: str, server: Server) -> None:
    refused(server.url, *REQUESTS[what])


@pytest.mark.attack("messages")
@pytest.mark.parametrize("what", MESSAGES)
def test_a_nonsense_message_is_passed_over_or_ends_its_session(what: str, server: Server) -> None:
    address = f"ws://{urlsplit(server.url).netloc}/_stcore/stream"
    options: dict[str, Any] = {"origin": server.url, "subprotocols": ["streamlit"], "max_size": None}
    with connect(address, **options, open_timeout=60) as opened, suppress(TimeoutError, ConnectionClosed):
        for _ in range(1000 if "thousand" in what else 1):
            opened.send(MESSAGES[what])
        opened.ping().wait(60)  # all of them have been read
        opened.recv(timeout=1)
