"""What stands between strangers and the app: bounds for each window and each address, and headers on every answer."""

from __future__ import annotations

from collections.abc import Callable

from starlette.middleware import Middleware

from hosting.gate import Bounds, Gate
from hosting.headers import Headers
from hosting.refusals import Refusals
from hosting.settings import Settings
from hosting.uploads import Kept, Uploads
from ui.compute import metrics
from ui.first_page import first_page
from ui.messages import Mailbox
from ui.sessions import forget_those_who_left, hold_within, tidy_uploads, upload_bytes
from ui.words import ENGLISH, load_words

_UPLOADS_ON_THE_WAY = 32  # files of 10 MB


def guards(allowed: Settings) -> list[Middleware]:
    """ASGI middleware, the outermost first."""

    refused = refusals()

    def mail() -> Mailbox:
        return Mailbox(allowed.max_downloads, allowed.max_message_kb * 2**10)

    page = first_page(charts=True)
    bounds = Bounds(
        allowed.max_visitors,
        allowed.max_windows,
        allowed.silent_seconds,
        allowed.max_messages,
        allowed.max_address_messages,
    )
    return [
        Middleware(Headers, allowed.frame_ancestors, page),
        Middleware(Gate, bounds, mail, refused),
        Middleware(
            Uploads,
            _UPLOADS_ON_THE_WAY,
            allowed.session_mb * 2**20,
            allowed.uploads_mb * 2**20,
            Kept(upload_bytes, tidy_uploads),
            refused,
        ),
    ]


def tidying(allowed: Settings) -> Callable[[], None]:
    """What a server does from time to time: those who left are forgotten, who holds too much begins anew."""
    refused = refusals()
    notice = Mailbox.notice(refused.say("too-much-memory"))

    def tidy() -> None:
        forget_those_who_left()
        for _ in range(hold_within(allowed.session_mb * 2**20, notice)):
            refused.count("too-much-memory")

    return tidy


def refusals() -> Refusals:
    """Sentences of common.md, in English: who is turned away has no session, so no language yet."""
    sentences = load_words("common", ENGLISH).group("refused")
    return Refusals(sentences.__getitem__, lambda why: metrics().turned_away(why))
