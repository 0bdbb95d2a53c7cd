"""A public server's ASGI middleware (limits of sessions and addresses, security headers) and its page of errors."""

from collections.abc import Callable, Iterable
from functools import partial
from urllib.parse import parse_qs

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config

from serving.http.access import Message, Refusals, Sites
from serving.http.security_headers import SecurityHeaders
from serving.http.upload_limits import StoredFiles, UploadLimits
from serving.http.websocket_gate import GateLimits, WebSocketGate
from serving.settings import Settings
from ui.app.index_page import front_end_files, index_page
from ui.chapter.contents import all_pages
from ui.compute.slots import metrics
from ui.streamlit_internals.mailbox import Mailbox, MessageLimits
from ui.streamlit_internals.sessions import (
    browser_of,
    end_disconnected_sessions,
    identify,
    limit_session_bytes,
    notify_all,
    owner_of,
    recover_from_error,
    trim_uploads,
    upload_bytes,
)
from ui.text.words import LANGUAGE, load_words, match_language

_UPLOADS_ON_THE_WAY = 32  # files of 10 MB
_READ = 1000  # characters of an address and of a header, in which a language may be named


def hosted_middleware(allowed: Settings) -> list[Middleware]:
    """ASGI middleware for a public server, the outermost first."""
    refused = refusals()

    limits = MessageLimits(allowed.max_downloads, allowed.max_message_kb * 2**10)
    pages = "".join(map(index_page, all_pages()))
    bounds = GateLimits(
        allowed.max_visitors,
        allowed.max_windows,
        allowed.silent_seconds,
        allowed.max_messages,
        allowed.max_address_messages,
    )
    return [
        Middleware(SecurityHeaders, allowed.frame_ancestors, pages),
        front_end_files(),
        Middleware(WebSocketGate, bounds, partial(Mailbox, limits), refused, public_sites(), identify),
        Middleware(
            UploadLimits,
            _UPLOADS_ON_THE_WAY,
            allowed.session_mb * 2**20,
            allowed.address_uploads_mb * 2**20,
            allowed.uploads_mb * 2**20,
            StoredFiles(
                upload_bytes, trim_uploads, lambda session, scope: owner_of(session) in (None, browser_of(scope))
            ),
            refused,
        ),
    ]


def public_sites() -> Sites:
    """Return the names and trusted sites of a public server: any name, unless server.allowedHosts lists them."""
    return Sites(
        hosts=lambda: config.get_option("server.allowedHosts") or None,
        origins=lambda: config.get_option("server.corsAllowedOrigins"),
    )


def session_cleanup(allowed: Settings) -> Callable[[], None]:
    """Return a function that ends disconnected sessions, and resets those that hold too much."""
    why = "too-much-memory"
    notice = _notice(why)

    def clean_up() -> None:
        end_disconnected_sessions()
        for _ in range(limit_session_bytes(allowed.session_mb * 2**20, allowed.controls_mb * 2**20, notice, LANGUAGE)):
            metrics().count_rejection(why)

    return clean_up


def announce_restart() -> None:
    """Tell everyone who has a page open that the server restarts."""
    notify_all(_notice("restarting"), LANGUAGE)


def _notice(why: str) -> Callable[[Iterable[str]], bytes]:
    return lambda wanted: Mailbox.notice(_sentence(why, wanted))


def refusals() -> Refusals:
    """Sentences of common.md. A visitor who is turned away has no session, but each request names languages."""
    return Refusals(lambda why, scope: _sentence(why, _wanted(scope)), lambda why: metrics().count_rejection(why))


def _sentence(why: str, wanted: Iterable[str]) -> str:
    return load_words("common", match_language(wanted)).group("refused")[why]


def _wanted(scope: Message) -> list[str]:
    """Languages, the best first: of the address, then of the browser (RFC 9110, section 12.5.4), in its order."""
    query = scope.get("query_string", b"")[:_READ].decode("ascii", "replace")
    accepted = dict(scope.get("headers", ())).get(b"accept-language", b"")[:_READ].decode("ascii", "replace")
    browsers = [part.partition(";")[0].strip() for part in accepted.split(",")]
    return [*parse_qs(query).get(LANGUAGE, []), *browsers]


def show_error(error: Exception) -> bool:
    """Count the failure and say that it is ours; return True, so that Streamlit shows nothing of its own."""
    metrics().count_failure(type(error).__name__)
    recover_from_error()
    st.error(load_words("common")("failure"), icon=":material/error:")
    return True
