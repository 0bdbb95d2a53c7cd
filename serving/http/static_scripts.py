"""Scripts that browsers cache for good: the URL of each contains a digest of its content.

A new version has another URL. Scripts, Streamlit's among them, are compressed once for all visitors.
"""

import gzip
import hashlib
import json
import mimetypes
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from serving.http.access import App, Message, Receive, Send
from viz_core.runtime.assets import ASSETS, reading
from viz_core.view.components import COMPONENTS, read_component

PLOTLY = "plotly"
PLOTLY_FILE = ASSETS / "vendor" / "plotly" / "plotly-figures.min.js"

_FOLDER = "atlas"
_CACHE_CONTROL = "public, max-age=31536000, immutable"
_COMPILE_ALL = b"//# allFunctionsCalledOnLoad\n"
"""Makes Chromium compile a script in the background while it loads, and not function by function later."""


@dataclass(frozen=True)
class Script:
    """A script and its URL."""

    address: str  # URL relative to the first page, with a digest of the code
    code: bytes  # JavaScript in UTF-8


@lru_cache(maxsize=32)
def script(name: str) -> Script:
    """Return a component as a module that exports `show` and `markup`, or plotly.js by the name PLOTLY.

    ValueError if there is no script of this name. AssetError if a file is missing.
    """
    known = {PLOTLY, *(path.parent.name for path in COMPONENTS.glob("*/main.js"))}
    if name not in known:
        raise ValueError(f"script: expected one of {', '.join(sorted(known))}, got {name!r}")
    with reading(PLOTLY_FILE):
        code = _COMPILE_ALL + PLOTLY_FILE.read_bytes() if name == PLOTLY else _module(name).encode()
    digest = hashlib.sha256(code).hexdigest()[:16]
    return Script(f"{_FOLDER}/{name}-{digest}.js", code)


@lru_cache(maxsize=32)
def compressed(name: str) -> bytes:
    """Return a script as it is sent to browsers that take gzip."""
    return gzip.compress(script(name).code, mtime=0)


def _module(name: str) -> str:
    files = read_component(name)
    markup = json.dumps(f"<style>{files.style}</style>{files.markup}")
    return f"export const show = {files.show};\nexport const markup = {markup};\n"


def routes() -> list[Route]:
    """Return the routes of the scripts, under any base path."""
    return [Route(f"/{{base:path}}{_FOLDER}/{{name}}-{{digest}}.js", _answer)]


def _answer(request: Request) -> Response:
    name, digest = request.path_params["name"], request.path_params["digest"]
    try:
        found = script(name)
    except ValueError:
        return PlainTextResponse("no such script", 404)
    if found.address != f"{_FOLDER}/{name}-{digest}.js":
        return PlainTextResponse("another version", 404)
    headers = {"Cache-Control": _CACHE_CONTROL, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    packed = "gzip" in request.headers.get("Accept-Encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    return Response(compressed(name) if packed else found.code, headers=headers, media_type="text/javascript")


_NO_GAIN = (".woff2", ".png", ".gif")  # compressed already


class FrontEndFiles:
    """ASGI middleware that answers for the files of Streamlit's front end from memory.

    A first visit loads a hundred of them. Streamlit looks each up on the disk and sends it from another thread, which
    takes more of the interpreter's time than the page itself. All other requests it answers as before.

    Args:
        app: the next application.
        folder: of the files, whose names contain digests.
        path: of that folder in the address of the site.
    """

    def __init__(self, app: App, folder: Path, path: str) -> None:
        self._app = app
        self._paths = {f"{path}/{file.relative_to(folder).as_posix()}": file for file in folder.glob("*/*.*")}
        self._address = re.compile(rf"{re.escape(path)}/[\w-]+/[^/]+$")
        self._answers: dict[str, tuple[list[tuple[bytes, bytes]], bytes]] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        answer = self._answer(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if answer is None:
            await self._app(scope, receive, send)
            return
        headers, body = answer
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Message) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
        """Headers and body; None where Streamlit answers: other files, parts, known versions, no gzip."""
        address = self._address.search(scope["path"])
        if address is None or address[0] not in self._paths:
            return None
        given = dict(scope["headers"])
        if b"range" in given or b"if-none-match" in given or b"gzip" not in given.get(b"accept-encoding", b""):
            return None
        if address[0] not in self._answers:
            try:
                self._answers[address[0]] = _packed(self._paths[address[0]])
            except OSError:  # another version was installed since the start
                return None
        return self._answers[address[0]]


def _packed(file: Path) -> tuple[list[tuple[bytes, bytes]], bytes]:
    body = file.read_bytes()
    headers = {
        "Content-Type": mimetypes.guess_type(file.name)[0] or "application/octet-stream",
        "Cache-Control": _CACHE_CONTROL,
        "Vary": "Accept-Encoding",
    }
    if file.suffix not in _NO_GAIN:
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body, compresslevel=6, mtime=0)
    headers["Content-Length"] = str(len(body))
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()], body
