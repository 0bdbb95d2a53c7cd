"""What stands between strangers and the app: bounds for each window and each address, and headers on every answer."""

from __future__ import annotations

from pathlib import Path

import streamlit
from starlette.middleware import Middleware

from hosting.gate import Bounds, Gate
from hosting.headers import Headers
from hosting.settings import Settings
from hosting.uploads import Kept, Uploads
from ui.compute import metrics
from ui.messages import Mailbox
from ui.sessions import tidy_uploads, upload_bytes
from ui.words import ENGLISH, load_words

_UPLOADS_ON_THE_WAY = 32  # files of 10 MB


def guards(allowed: Settings) -> list[Middleware]:
    """ASGI middleware, the outermost first."""

    words = load_words("common", ENGLISH)  # no session, so no language yet
    sentences = {
        "too-many-visitors": words("too-many-visitors"),
        "too-many-windows": words("too-many-windows"),
        "too-many-uploads": words("too-many-uploads"),
    }

    def turned_away(why: str) -> None:
        metrics().turned_away(why)

    def mail() -> Mailbox:
        return Mailbox(allowed.max_downloads, allowed.max_message_kb * 2**10)

    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    bounds = Bounds(allowed.max_visitors, allowed.max_windows, allowed.silent_seconds, allowed.max_messages)
    return [
        Middleware(Headers, allowed.frame_ancestors, page),
        Middleware(Gate, bounds, mail, sentences.__getitem__, turned_away),
        Middleware(
            Uploads,
            _UPLOADS_ON_THE_WAY,
            allowed.session_mb * 2**20,
            allowed.uploads_mb * 2**20,
            Kept(upload_bytes, tidy_uploads),
            sentences.__getitem__,
            turned_away,
        ),
    ]
