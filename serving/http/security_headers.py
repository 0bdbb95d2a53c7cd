"""Security headers: no resources from other sites or for them, no foreign frames, no guessing of content types."""

import base64
import hashlib
import re

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse

from serving.http.access import App, Message, Receive, Send

_BLOCKED = ("/_stcore/metrics", "/_stcore/script-health-check", "/_stcore/agent/")
"""Streamlit's own routes that visitors do not need."""

_NEEDED = ("camera", "microphone", "clipboard-write", "fullscreen")
_UNNEEDED = ("geolocation", "payment", "usb", "serial", "hid", "midi", "display-capture")
_PERMISSIONS = ", ".join([*(f"{name}=(self)" for name in _NEEDED), *(f"{name}=()" for name in _UNNEEDED)])
_YEAR = 365 * 24 * 3600  # seconds


def policy(frame_ancestors: str = "", pages: str = "") -> str:
    """Return the content security policy (CSP level 3).

    Streamlit's front end creates styles at run time; components are modules, from the server or from their text
    (`blob:`). No other script may run.

    Args:
        frame_ancestors: sites that may show the Atlas in a frame.
        pages: HTML of the front end's pages; their inline scripts are allowed by digest.
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


class SecurityHeaders:
    """ASGI middleware that sets the headers on every response and blocks unneeded routes.

    Args:
        app: the next application.
        frame_ancestors: sites that may show the Atlas in a frame, as in CSP; "" for none.
        pages: HTML of the front end's pages.
    """

    def __init__(self, app: App, frame_ancestors: str = "", pages: str = "") -> None:
        self._app = app
        self._headers = {
            "Content-Security-Policy": policy(frame_ancestors, pages),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": _PERMISSIONS,
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
                    headers["Strict-Transport-Security"] = f"max-age={_YEAR}"
                    message["headers"] = [_secure(*header) for header in headers.raw]
            await send(message)

        blocked = any(route in scope["path"] for route in _BLOCKED)
        await (PlainTextResponse("not found", 404) if blocked else self._app)(scope, receive, send_with)


def _digest(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _secure(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Mark a cookie as Secure."""
    cookie = name.lower() == b"set-cookie" and b"secure" not in value.lower().split(b"; ")
    return name, value + b"; Secure" if cookie else value
