"""What a browser may do with the pages: nothing from elsewhere, in no other site's frame, with no guess at types."""

from __future__ import annotations

import base64
import hashlib
import re

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse

from serving.http.refusals import App, Message, Receive, Send

_SHUT = ("/_stcore/metrics", "/_stcore/script-health-check", "/_stcore/agent/")
"""Streamlit's own routes that tell or start more than a visitor needs."""


def policy(frame_ancestors: str = "", pages: str = "") -> str:
    """The content security policy (CSP level 3).

    Streamlit's front end makes its styles as it goes; components of the Atlas come as modules, from the server or made
    from their text (`blob:`). No other script runs.

    Args:
        frame_ancestors: sites that may show the Atlas in a frame.
        pages: the front end's; the scripts that stand in them are allowed by their digests.
    """
    scripts = dict.fromkeys(re.findall(r"<script>(.*?)</script>", pages, flags=re.DOTALL))
    inline = "".join(f" '{_digest(script)}'" for script in scripts)
    parts = {
        "default-src": "'self'",
        "script-src": f"'self' 'wasm-unsafe-eval' blob:{inline}",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "media-src": "'self' data: blob:",
        "worker-src": "'self' blob:",
        "connect-src": "'self' data: blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": f"'self' {frame_ancestors}".strip(),
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


class Headers:
    """ASGI middleware that sets them on every answer, and shuts the routes that are for nobody.

    Args:
        app: what comes after.
        frame_ancestors: sites that may show the Atlas in a frame, as in CSP; none but itself where empty.
        pages: the front end's.
    """

    def __init__(self, app: App, frame_ancestors: str = "", pages: str = "") -> None:
        self._app = app
        self._headers = {
            "Content-Security-Policy": policy(frame_ancestors, pages),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        if not frame_ancestors:
            self._headers["X-Frame-Options"] = "SAMEORIGIN"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in self._headers.items():
                    headers[name] = value
                if scope["scheme"] == "https":
                    message["headers"] = [_secure(*header) for header in headers.raw]
            await send(message)

        shut = any(route in scope["path"] for route in _SHUT)
        await (PlainTextResponse("not found", 404) if shut else self._app)(scope, receive, send_with)


def _digest(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _secure(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A cookie that came by TLS goes by TLS alone."""
    cookie = name.lower() == b"set-cookie" and b"secure" not in value.lower().split(b"; ")
    return name, value + b"; Secure" if cookie else value
