"""Requests no browser sends by itself: climbing paths, foreign origins, forged and oversized uploads and messages."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

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
FOREIGN = "https://elsewhere.example"
BOUNDARY = "boundary"


@dataclass(frozen=True)
class Attack:
    """One try: what is attacked, how, and a function from the server's address to what it got, in words.

    In a browser it gets the window first. It raises AssertionError where the try gets through.
    """

    target: str
    how: str
    run: Callable[..., str]


def attacks() -> Iterator[Attack]:
    """Every try of this file."""
    for route in ROUTES:
        for climb in CLIMBS:
            yield Attack("files", f"GET `{route}{climb}`", _reader(route + climb))
    yield Attack("files", "GET a path of 60,000 signs", _reader("/" + "a" * 60_000))
    yield Attack("requests", "TRACE `/`", _sender("TRACE", "/"))
    yield Attack("requests", "DELETE `/_stcore/upload_file/none/none`", _sender("DELETE", "/_stcore/upload_file/a/b"))
    yield Attack("requests", "POST 1 MB to `/`", _sender("POST", "/", b"x" * 2**20))
    yield Attack("requests", "a header of 100,000 signs", _sender("GET", "/", headers={"X-Long": "x" * 100_000}))
    yield Attack("uploads", "PUT without a token", _uploader(1000, {}))
    yield Attack(
        "uploads", "PUT with a made-up token", _uploader(1000, {"X-Xsrftoken": "1", "Cookie": "_streamlit_xsrf=1"})
    )
    yield Attack("uploads", "PUT from another site", _uploader(1000, {"Origin": FOREIGN}))
    yield Attack("uploads", "PUT 30 MB into a session that is not there", _uploader(30 * 2**20, {}))
    yield Attack("cross-site", "read the health route from another site", _no_foreign_reader("/_stcore/health"))
    yield Attack("cross-site", "read media from another site", _no_foreign_reader("/media/none.png"))
    yield Attack("cross-site", "open a session from another site", _foreign_session)
    yield Attack("messages", "random bytes", _messenger(bytes(range(256)) * 8))
    yield Attack("messages", "text where bytes are expected", _messenger("<script>alert(1)</script>"))
    yield Attack("messages", "an empty message", _messenger(b""))
    yield Attack("messages", "a field that claims 2 GB", _messenger(b"\x5a\xff\xff\xff\xff\x07"))
    yield Attack("messages", "25 MB at once", _messenger(b"\0" * (25 * 2**20)))
    yield Attack("messages", "a thousand nonsense messages", _messenger(b"\x08\x01", times=1000))


def send_request(
    url: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body; the path goes out as it is."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def _sender(
    method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Callable[[str], str]:
    def run(url: str) -> str:
        try:
            status, _, content = send_request(url, method, path, body, headers)
        except (ConnectionError, http.client.HTTPException):
            return "the connection is closed"
        assert not any(secret in content for secret in SECRETS), content[:200]
        assert status < 500, status
        if status == 200 and b'<div id="root">' in content:
            return "200, the app's own page"
        assert status >= 400, (status, content[:200])
        return str(status)

    return run


def _reader(path: str) -> Callable[[str], str]:
    return _sender("GET", path)


def multipart(content: bytes) -> bytes:
    """A form with one file, whose name would climb."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="../../f.png"\r\n\r\n'
    return head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()


def _uploader(size: int, headers: dict[str, str]) -> Callable[[str], str]:
    form = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    return _sender("PUT", "/_stcore/upload_file/no-such-session/no-such-file", multipart(bytes(size)), form | headers)


def _no_foreign_reader(path: str) -> Callable[[str], str]:
    def run(url: str) -> str:
        status, headers, _ = send_request(url, "GET", path, headers={"Origin": FOREIGN})
        allowed = headers.get("access-control-allow-origin")
        assert allowed not in ("*", FOREIGN), headers
        return f"{status}, and no leave for the other site to read it"

    return run


def _session(url: str, origin: str) -> AbstractContextManager[ClientConnection]:
    address = f"ws://{urlsplit(url).netloc}/_stcore/stream"
    return connect(address, origin=origin, subprotocols=["streamlit"], max_size=None, open_timeout=60)  # type: ignore[arg-type,list-item]


def _foreign_session(url: str) -> str:
    try:
        with _session(url, FOREIGN):
            raise AssertionError("a session was opened for another site")
    except InvalidStatus as refusal:
        return f"{refusal.response.status_code}, no session"


def _messenger(message: bytes | str, times: int = 1) -> Callable[[str], str]:
    """Into a session opened as a browser opens it."""

    def run(url: str) -> str:
        with _session(url, url) as session:
            try:
                for _ in range(times):
                    session.send(message)
                session.ping().wait(60)  # all of them have been read
                session.recv(timeout=1)
                return "passed over, the session goes on"
            except TimeoutError:
                return "passed over, nothing comes back"
            except ConnectionClosed as closed:
                code = closed.rcvd.code if closed.rcvd else "without a word"
                return f"the session is closed ({code})"

    return run
