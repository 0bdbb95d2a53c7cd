"""Scripts that browsers cache for good: the URL of each contains a digest of its content.

A new version has another URL. Scripts are compressed once for all visitors.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

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
    """A script and its URL.

    Attributes:
        address: URL relative to the first page, with a digest of the code.
        code: JavaScript in UTF-8.
    """

    address: str
    code: bytes


@lru_cache(maxsize=32)
def script(name: str) -> Script:
    """Return a component as a module that exports `show` and `markup`, or plotly.js by the name PLOTLY.

    Raises:
        ValueError: if there is no script of this name.
        AssetError: if a file is missing.
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
