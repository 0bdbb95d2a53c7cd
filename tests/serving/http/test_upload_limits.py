"""Headers of answers, scripts that are served, and uploads: what is sent, and what is refused."""

import asyncio
import errno
import hashlib
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plotly
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from serving.http.access import Message, Refusals
from serving.http.security_headers import SecurityHeaders, policy
from serving.http.static_scripts import PLOTLY, PLOTLY_FILE, FrontEndFiles, routes, script
from serving.http.upload_limits import StoredFiles, UploadLimits
from tests.serving.http.sockets import asynchronous
from tests.source_files import ROOT
from ui.streamlit_internals import sessions

MB = 2**20


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    manager = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(sessions, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=manager))
    return manager


class Host:
    """A host behind the middleware: a file arrives when it is let go."""

    def __init__(self, files: MemoryUploadedFileManager, max_transfers: int = 2, session_bytes: int = 3 * MB) -> None:
        self.away: Counter[str] = Counter()
        self.files = files
        self.go = asyncio.Event()
        stored = StoredFiles(sessions.upload_bytes, sessions.trim_uploads, lambda session, _scope: session != "theirs")
        refusals = Refusals("<{}>".format, lambda why: self.away.update([why]))
        self.app = UploadLimits(self._take, max_transfers, session_bytes, 6 * MB, 8 * MB, stored, refusals)

    async def _take(self, scope: Message, _receive: Any, send: Any) -> None:
        await self.go.wait()
        session, file = scope["path"].split("/")[-2:]
        if file == "none-left":
            raise OSError(errno.ENOSPC, "No space left on device")
        data = bytes(scope.get("size", MB))
        self.files.add_file(session, UploadedFileRec(file, "x.png", "image/png", data))
        await send({"type": "http.response.start", "status": 204})

    async def put(
        self, session: str, file: str, size: int = MB, method: str = "PUT", address: str = ""
    ) -> tuple[int, bytes]:
        got: list[Message] = []

        async def take(message: Message) -> None:
            got.append(message)

        path = f"/_stcore/upload_file/{session}/{file}"
        scope = {"type": "http", "method": method, "path": path, "size": size, "client": (address or session, 1)}
        await self.app(scope, asyncio.Queue().get, take)
        return got[0]["status"], got[-1].get("body", b"")


@asynchronous
async def test_three_hundred_that_nobody_uses(files: MemoryUploadedFileManager) -> None:
    host = Host(files)
    host.go.set()
    assert {(await host.put("a", str(number)))[0] for number in range(300)} == {204}
    assert list(files.file_storage["a"]) == ["297", "298", "299"], "the newest stay"
    assert host.away == {"old-uploads": 297}
    for number in range(99):
        await host.put("small", str(number), size=0)
    assert len(files.file_storage["small"]) == 48, "16 a megabyte"
    files.remove_session_files("a")
    await host.put("small", "last", size=0)
    assert set(host.app._senders) == {"small"}, "who has left is forgotten"


@asynchronous
async def test_one_address_may_not_keep_all_there_is(files: MemoryUploadedFileManager) -> None:
    host = Host(files)
    host.go.set()
    answers = [await host.put(f"s{number}", "f", size=2 * MB, address="10.0.0.1") for number in range(4)]
    assert answers == [(204, b"")] * 3 + [(503, b"<too-many-uploads>")]
    assert (await host.put("s9", "f", address="10.0.0.2"))[0] == 204, "others have their share"
    files.remove_session_files("s0")
    assert (await host.put("s5", "f", address="10.0.0.1"))[0] == 204, "who leaves makes room"
    answers = [await host.put(f"t{number}", "f", size=2 * MB, address=f"10.0.1.{number}") for number in range(2)]
    assert answers == [(204, b""), (503, b"<too-many-uploads>")], "nor all of them together"


@asynchronous
async def test_too_many_on_the_way_at_once(files: MemoryUploadedFileManager) -> None:
    host = Host(files)
    arriving = [asyncio.create_task(host.put(f"s{n}", "f", size=3 * MB, address="10.0.0.1")) for n in range(4)]
    await asyncio.sleep(0)
    host.go.set()
    assert [(await task)[0] for task in arriving] == [204, 204, 503, 503]
    assert await host.put("late", "f", address="10.0.0.1") == (503, b"<too-many-uploads>"), "they count for an address"
    assert (await host.put("late", "f"))[0] == 204


@asynchronous
async def test_a_full_disk_is_a_sentence_and_other_requests_pass(files: MemoryUploadedFileManager) -> None:
    host = Host(files, max_transfers=1)
    host.go.set()
    assert await host.put("a", "none-left") == (507, b"<no-space>")
    assert (await host.put("a", "b"))[0] == 204, "nothing is held by what failed"
    assert host.away == {"no-space": 1}


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@asynchronous
async def test_who_knows_a_session_of_somebody_else_cannot_change_its_files(
    method: str, files: MemoryUploadedFileManager
) -> None:
    host = Host(files)
    host.go.set()
    assert await host.put("theirs", "1", method=method) == (403, b"<foreign-session>")
    assert host.away == {"foreign-session": 1}
    assert (await host.put("mine", "1", method=method))[0] == 204


def page(_request: Request) -> Response:
    response = PlainTextResponse("page", headers={"X-Content-Type-Options": "guess", "X-Own": "kept"})
    response.set_cookie("_streamlit_xsrf", "2|x", samesite="lax")
    response.set_cookie("other", "y", secure=True)
    return response


def with_headers(frame_ancestors: str = "", address: str = "http://testserver") -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", page)], middleware=[Middleware(SecurityHeaders, frame_ancestors)])
    return TestClient(app, address)


def directives(policy: str) -> dict[str, list[str]]:
    return {name: values for name, *values in (part.split() for part in policy.split(";"))}


HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "SAMEORIGIN",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
SHUT = {f"/_stcore/{name}" for name in ("metrics", "metrics?families=active_sessions", "script-health-check")}
SHUT |= {"/_stcore/agent/interact", "/_stcore/agent/openapi.json", "/_stcore/agent/mcp", "/base/_stcore/metrics"}


@pytest.mark.attack("headers")
@pytest.mark.parametrize("path", ["/", "/media/x.png", *sorted(SHUT)])
def test_every_answer_has_them_and_nothing_comes_from_or_goes_elsewhere(path: str) -> None:
    answer = with_headers().get(path)
    headers = answer.headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    if path in SHUT:
        assert (answer.status_code, answer.text) == (404, "not found")
    else:
        assert headers["x-own"] == "kept", "what an answer says else stays"
    allowed = directives(headers["content-security-policy"])
    assert allowed["object-src"] == ["'none'"]
    for name in "default-src script-src connect-src img-src frame-ancestors form-action base-uri".split():
        assert allowed[name][0] == "'self'"
        scripts = {"data:", "'unsafe-inline'"} if name == "script-src" else set()
        assert not ({"*", "http:", "https:", "'unsafe-eval'"} | scripts) & set(allowed[name])


@pytest.mark.attack("headers")
def test_a_script_in_the_page_runs_by_its_digest_alone() -> None:
    page = "<script>alert(1)</script><script type=module src=x></script>"
    scripts = directives(policy(pages=page))["script-src"]
    known = "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI="
    assert [source for source in scripts if "sha" in source] == [f"'{known}'"]


@pytest.mark.attack("headers")
def test_a_site_that_may_frame_it_is_named() -> None:
    headers = with_headers("https://huggingface.co").get("/").headers
    assert directives(headers["content-security-policy"])["frame-ancestors"] == ["'self'", "https://huggingface.co"]
    assert "x-frame-options" not in headers, "it knows no names, and an old browser would refuse all"


@pytest.mark.attack("headers")
def test_who_came_by_tls_comes_by_tls_again_and_so_do_cookies() -> None:
    plain, safe = (with_headers(address=f"{scheme}://testserver").get("/").headers for scheme in ("http", "https"))
    assert "strict-transport-security" not in plain
    assert int(safe["strict-transport-security"].removeprefix("max-age=")) >= 180 * 24 * 3600
    assert ["Secure" in cookie for cookie in plain.get_list("set-cookie")] == [False, True]
    assert [cookie.count("Secure") for cookie in safe.get_list("set-cookie")] == [1, 1]
    assert all("samesite=lax" in cookie.lower() for cookie in safe.get_list("set-cookie"))


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=list(routes())))


@pytest.mark.parametrize("name", [PLOTLY, "attention_view"])
def test_a_script_is_kept_for_good_under_an_address_with_its_digest(client: TestClient, name: str) -> None:
    found = script(name)
    digest = hashlib.sha256(found.code).hexdigest()
    assert found.address == f"atlas/{name}-{digest[:16]}.js"
    answer = client.get(f"/{found.address}")
    assert (answer.status_code, answer.content) == (200, found.code)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    mounted = TestClient(Starlette(routes=[Mount("/tools", routes=list(routes()))]))
    assert mounted.get(f"/tools/class/{found.address}").status_code == 200, "under whatever path the app is served"


@pytest.mark.parametrize(
    "path",
    [
        "atlas/chart-0000000000000000.js",  # another version
        "atlas/shared-0000000000000000.js",  # a folder, but no component
        "atlas/..%2Fchart-0000000000000000.js",
        "atlas/chart-.js",
    ],
)
def test_nothing_else_is_answered(client: TestClient, path: str) -> None:
    assert client.get(f"/{path}").status_code == 404


@pytest.fixture
def front_end(tmp_path: Path) -> TestClient:
    """Two files in the folder that is served, one beside it, and a server that answers for all else."""
    (tmp_path / "static" / "js").mkdir(parents=True)
    for name, code in (("static/js/index.abc.js", b"code;" * 99), ("own.js", b"no")):
        (tmp_path / name).write_bytes(code)
    inner = Starlette(routes=[Route("/{path:path}", lambda _: PlainTextResponse("inner"), methods=["GET", "HEAD"])])
    return TestClient(FrontEndFiles(inner, tmp_path / "static", "/static"))


def test_files_of_the_front_end_come_packed_from_memory(front_end: TestClient, tmp_path: Path) -> None:
    for prefix in ("", "/base/chapter"):
        answer = front_end.get(f"{prefix}/static/js/index.abc.js")
        assert answer.content == b"code;" * 99
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) < 99
        assert answer.headers["content-type"] in ("text/javascript", "application/javascript")
        assert "immutable" in answer.headers["cache-control"]
    (tmp_path / "static" / "js" / "index.abc.js").unlink()
    assert front_end.get("/static/js/index.abc.js").content == b"code;" * 99


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("own.js", {}),
        ("static/js/..%2F..%2Fown.js", {}),
        ("static/js/none.js", {}),
        ("static/js/index.abc.js", {"Accept-Encoding": "identity"}),
        ("static/js/index.abc.js", {"Range": "bytes=0-3"}),
        ("static/js/index.abc.js", {"If-None-Match": '"x"'}),
    ],
)
def test_all_else_is_left_to_streamlit(front_end: TestClient, path: str, headers: dict[str, str]) -> None:
    assert front_end.get(f"/{path}", headers=headers).text == "inner"
    assert front_end.head(f"/{path}").text == ""


def test_plotly_is_what_its_readme_says_and_pythons_own_version() -> None:
    readme = (PLOTLY_FILE.parent / "README.md").read_text(encoding="utf-8")
    (stated,) = re.findall(r"^ +([0-9a-f]{64})$", readme, re.MULTILINE)
    assert hashlib.sha256(PLOTLY_FILE.read_bytes()).hexdigest() == stated
    (fetched,) = set(re.findall(r"plotly\.js[@ ]v?(\d+\.\d+\.\d+)", readme))
    whole = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    for file in (PLOTLY_FILE, whole):
        assert f"v{fetched}" in file.read_text(encoding="utf-8")[:200]
    assert "MIT" in (PLOTLY_FILE.parent / "LICENSE").read_text(encoding="utf-8")


def test_plotly_can_draw_all_that_figures_ask_for() -> None:
    names = (PLOTLY_FILE.parent / "figures.js").read_text(encoding="utf-8")
    drawn = {"scatter", *re.findall(r"plotly\.js/lib/(\w+)", names)} - {"core"}
    used = set()
    for folder in ("pages", "ui", "viz_core"):
        for path in (ROOT / folder).rglob("*.py"):
            used |= set(re.findall(r"\bgo\.([A-Z]\w+)\(", path.read_text(encoding="utf-8")))
    assert {name.lower() for name in used} - {"figure", "frame", "layout"} == drawn
