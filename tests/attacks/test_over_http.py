"""Climbing paths, foreign origins, forged and oversized uploads and messages: refused, and the server stands."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from benchmarks.serving import Server
from tests.attacks.over_http import FOREIGN, FORM, multipart, send_request

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


def session(url: str, origin: str) -> AbstractContextManager[ClientConnection]:
    address = f"ws://{urlsplit(url).netloc}/_stcore/stream"
    return connect(address, origin=origin, subprotocols=["streamlit"], max_size=None, open_timeout=60)  # type: ignore[arg-type,list-item]


@pytest.mark.attack("cross-site")
def test_another_site_reads_nothing_and_opens_no_session(server: Server) -> None:
    for path in ("/_stcore/health", "/media/none.png"):
        _, headers, _ = send_request(server.url, "GET", path, headers={"Origin": FOREIGN})
        assert headers.get("access-control-allow-origin") not in ("*", FOREIGN)
    with pytest.raises(InvalidStatus), session(server.url, FOREIGN):
        pass


@pytest.mark.attack("messages")
@pytest.mark.parametrize("what", MESSAGES)
def test_a_nonsense_message_is_passed_over_or_ends_its_session(what: str, server: Server) -> None:
    with session(server.url, server.url) as opened, suppress(TimeoutError, ConnectionClosed):
        for _ in range(1000 if "thousand" in what else 1):
            opened.send(MESSAGES[what])
        opened.ping().wait(60)  # all of them have been read
        opened.recv(timeout=1)
