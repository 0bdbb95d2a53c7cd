"""Which browser a session belongs to: nobody else can resume it, or upload into it, though they know its id.

Streamlit resumes a session for whoever names its id, unless the user is another one. A header that no client can set
makes each browser a user of its own: the digest of the cookie that its uploads need too.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from streamlit.runtime import get_instance
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

HEADER = b"x-atlas-browser"  # in hosted.toml too
_ATTRIBUTE = "browser"
_COOKIE = "_streamlit_xsrf"
_UNKNOWN = "unknown-"  # a first visit connects before the browser has its cookie


def identify(scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a request's scope with the header of its browser; without a cookie, of a browser of its own."""
    browser = browser_of(scope) or _UNKNOWN + secrets.token_hex(16)
    others = [(name, value) for name, value in scope.get("headers", ()) if name.lower() != HEADER]
    return {**scope, "headers": [*others, (HEADER, browser.encode())]}


def browser_of(scope: MutableMapping[str, Any]) -> str | None:
    """Return the digest of a browser's cookie, which is masked anew whenever it is set; None without a valid one."""
    for name, value in scope.get("headers", ()):
        if name.lower() == b"cookie":
            try:
                cookie = SimpleCookie(value.decode("latin-1")).get(_COOKIE)
                token = decode_xsrf_token_string(cookie.value)[0] if cookie else None
            except (CookieError, ValueError):
                token = None
            if token:
                return hashlib.sha256(token).hexdigest()
    return None


def owner_of(session_id: str) -> str | None:
    """Return the browser that a connected session belongs to; None where it is unknown or there is no session."""
    session: Any = get_instance().get_app_session(session_id)
    owner = None if session is None else session._user_info.get(_ATTRIBUTE)
    return None if owner is None or owner.startswith(_UNKNOWN) else owner
