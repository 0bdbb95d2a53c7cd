"""What reaches Streamlit at all: whose page, by which name, from which address, and in whose session.

The servers cannot reach any other machine, and say so if one of them tries. The hosted one listens on `::`, as it does
by itself, so that a proxy on IPv4 has an address of IPv6.
"""

import asyncio
import http.client
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from benchmarks.serving import HOSTED, Server, running
from benchmarks.visitors import Visitor, visit
from tests.attacks import no_way_out
from tests.attacks.over_http import FOREIGN, FORM, multipart, send_request

TIMEOUT = 120.0
CHAPTERS = ("home", "sinusoidal-encoding", "transformer", "vision-transformer", "model-lab")
KEYS = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}


class Gated(NamedTuple):
    """A server without a way out."""

    url: str
    host: str
    folder: Path


def without_way_out(folder: Path, script: str, **settings: str) -> Iterator[Gated]:
    shutil.copy(str(no_way_out.__file__), folder / "sitecustomize.py")
    settings |= {"PYTHONPATH": str(folder), "ATTEMPTS": str(folder / "attempts")}
    with running(folder, script, settings) as server:
        yield Gated(server.url, urlsplit(server.url).netloc, folder)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    settings = {"ATLAS_WORKERS": "0", "ATLAS_MAX_WINDOWS": "2", "STREAMLIT_SERVER_ADDRESS": ""}
    settings["STREAMLIT_SERVER_ALLOWED_HOSTS"] = '["atlas.example", "127.0.0.1"]'
    yield from without_way_out(tmp_path_factory.mktemp("hosted"), HOSTED, **settings)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    yield from without_way_out(tmp_path_factory.mktemp("home"), "app.py")


def shake_hands(url: str, host: str, origin: str) -> int:
    """The status that a page of another site gets."""
    headers = {"Host": host, "Origin": origin, "Upgrade": "websocket", "Connection": "Upgrade", **KEYS}
    return send_request(url, "GET", "/_stcore/stream", headers=headers)[0]


def cookie_of(server: Gated) -> str:
    """The cookie of a new browser."""
    return send_request(server.url, "GET", "/_stcore/health")[1]["set-cookie"].partition(";")[0]


@asynccontextmanager
async def entered(server: Gated, address: str, cookie: str = "", resume: str = "") -> AsyncIterator[Visitor]:
    """A visitor with a page, behind a proxy on IPv4."""
    headers = {"X-Forwarded-For": address} | ({"Cookie": cookie} if cookie else {})
    async with visit(server.url, TIMEOUT, headers=headers, resume=resume) as visitor:
        await visitor.open("sinusoidal-encoding")
        yield visitor


@pytest.mark.attack("cross-site")
def test_a_page_of_another_site_or_under_another_name_opens_nothing(hosted: Gated, home: Gated) -> None:
    """A name that another site points here is one site to the browser (DNS rebinding)."""
    for origin in (FOREIGN, *"http://localhost:1234 http://127.0.0.1 http://0.0.0.0:80 null https://8.8.8.8".split()):
        assert [shake_hands(hosted.url, hosted.host, origin) for _ in range(10)] == [403] * 10
        assert shake_hands(hosted.url, hosted.host, hosted.url) == 101
    assert shake_hands(home.url, home.host, FOREIGN) == 403
    assert "elsewhere.example" not in (hosted.folder / "server.log").read_text()
    headers = send_request(hosted.url, "GET", "/_stcore/health", headers={"Origin": FOREIGN})[1]
    assert headers.get("access-control-allow-origin") not in ("*", FOREIGN), "another site reads nothing"
    rebound = f"evil.example:{urlsplit(home.url).port}"
    for server, host, known in (
        (home, rebound, False),
        (home, home.host, True),
        (hosted, "evil.example", False),
        (hosted, "atlas.example", True),
    ):
        assert shake_hands(server.url, host, f"http://{host}") == (101 if known else 403)
        assert send_request(server.url, "GET", "/", headers={"Host": host})[0] == (200 if known else 403)


@pytest.mark.attack("sessions")
def test_a_session_is_not_taken_by_who_knows_its_id(hosted: Gated) -> None:
    async def test() -> None:
        mine = cookie_of(hosted)
        async with entered(hosted, "10.0.1.1", mine) as owner:
            for number, cookie in enumerate(("", cookie_of(hosted))):
                async with entered(hosted, f"10.0.1.{number + 2}", cookie, owner.session) as thief:
                    assert thief.session != owner.session
            assert (await owner.open("sinusoidal-encoding")).texts, "its owner goes on"
            session = owner.session
            headers = {"Cookie": cookie_of(hosted), "X-Forwarded-For": "10.0.1.9"}
            token = headers["Cookie"].partition("=")[2]
            path = f"/_stcore/upload_file/{session}/{session}"
            assert send_request(hosted.url, "PUT", path, b"", headers | {"X-Xsrftoken": token})[0] == 403
            async with entered(hosted, "10.0.1.1", mine, session) as again:
                assert again.session == session, "whose connection was lost comes back, even before that is noticed"
                with pytest.raises(InvalidStatus, match="503"):  # a proxy's visitors are counted one by one
                    await entered(hosted, "10.0.1.1").__aenter__()
        assert session not in (hosted.folder / "server.log").read_text()

    asyncio.run(asyncio.wait_for(test(), TIMEOUT))
    headers = send_request(hosted.url, "GET", "/_stcore/health", headers={"X-Forwarded-Proto": "https"})[1]
    assert "; secure" in headers["set-cookie"].lower(), "a proxy is believed that a visitor came by TLS"
    assert headers["strict-transport-security"].startswith("max-age=")


@pytest.mark.attack("requests")
@pytest.mark.parametrize("name", ["hosted", "home"])
def test_no_request_leaves_the_server(name: str, request: pytest.FixtureRequest) -> None:
    """While its pages are visited; only a model that somebody names in the lab is looked for elsewhere."""
    server: Gated = request.getfixturevalue(name)

    async def test() -> None:
        async with visit(server.url, TIMEOUT, headers={"X-Forwarded-For": "10.0.2.1"}) as visitor:
            for chapter in CHAPTERS:
                assert (await visitor.open(chapter)).texts

    asyncio.run(asyncio.wait_for(test(), TIMEOUT))
    attempts = server.folder / "attempts"
    assert not attempts.exists(), attempts.read_text()


# Words of files that lie on the server and are nobody's business.
SECRETS = (b"root:x:", b"[tool.pytest", b"class Settings", b"requires-python", b"[boot loader]")
ROUTES = ("", "/static", "/media", "/component", "/component/atlas", "/_stcore/bidi-components", "/app/static")
CLIMBS = """/../pyproject.toml /../../../../../../etc/passwd /..%2f..%2f..%2f..%2fetc/passwd //etc/passwd
/%2e%2e/%2e%2e/%2e%2e/etc/passwd /%252e%252e%252fetc%252fpasswd /....//....//etc/passwd /..%5c..%5cpyproject.toml
/..;/pyproject.toml /%00/etc/passwd /file:///etc/passwd /serving/settings.py /.git/config""".split()
UPLOAD = "/_stcore/upload_file/no-such-session/no-such-file"
MADE_UP = {"X-Xsrftoken": "1", "Cookie": "_streamlit_xsrf=1"}
REQUESTS: list[tuple[Any, ...]] = [
    ("TRACE", "/"),
    ("DELETE", "/_stcore/upload_file/a/b"),
    ("POST", "/", b"x" * 2**20),
    ("GET", "/" + "a" * 60_000),
    ("GET", "/", None, {"X-Long": "x" * 100_000}),
    ("PUT", UPLOAD, multipart(1000), FORM),
    ("PUT", UPLOAD, multipart(1000), FORM | MADE_UP),
    ("PUT", UPLOAD, multipart(1000), FORM | {"Origin": FOREIGN}),
    ("PUT", UPLOAD, multipart(30 * 2**20), FORM),
    *(("GET", route + climb) for route in ROUTES for climb in CLIMBS),
]


@pytest.mark.attack("requests")
def test_a_forged_request_is_refused_and_no_path_climbs_out(server: Server) -> None:
    for request in REQUESTS:
        with suppress(ConnectionError, http.client.HTTPException):  # the connection may be closed
            status, _, content = send_request(server.url, *request)
            assert not any(secret in content for secret in SECRETS), content[:200]
            own_page = status == 200 and b'<div id="root">' in content
            assert own_page or 400 <= status < 500, (request[1][:100], status, content[:200])
        assert send_request(server.url, "GET", "/_stcore/health")[0] == 200
