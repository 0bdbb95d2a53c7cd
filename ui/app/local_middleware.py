"""ASGI middleware of the app on one's own machine. It imports nothing heavy."""

import socket
from math import inf

from starlette.middleware import Middleware
from streamlit import config

from serving.http.access import Refusals, Sites
from serving.http.websocket_gate import GateLimits, WebSocketGate
from ui.streamlit_internals.mailbox import Mailbox
from ui.streamlit_internals.self_test import works

_MANY = 2**31
_UNLIMITED = GateLimits(_MANY, _MANY, silent_seconds=inf, messages=_MANY, messages_an_address=_MANY)
_SENTENCES = {
    "foreign-host": "The Atlas does not answer to this host name. Add the name to server.allowedHosts.",
    "foreign-origin": "Another site's page may not use the Atlas.",
}


def local_middleware() -> list[Middleware]:
    """The middleware that turns other sites away and brings requests up to date, without any limit."""
    if not works("message_filter"):
        return []
    refusals = Refusals(lambda why, _scope: _SENTENCES.get(why, why), lambda _why: None)
    return [Middleware(WebSocketGate, _UNLIMITED, Mailbox, refusals, Sites(_own_names, _trusted_origins))]


def _own_names() -> list[str] | None:
    """Names of this machine. A name that another site points here (DNS rebinding) is none of them."""
    from serving.settings import settings

    if settings().hosted or not _protected():  # on Streamlit Community Cloud, which gives the app a name
        return None
    machine = socket.gethostname()
    given = [config.get_option("server.address"), config.get_option("browser.serverAddress")]
    return [machine, f"{machine}.local", *filter(None, given), *config.get_option("server.allowedHosts")]


def _trusted_origins() -> list[str] | None:
    return list(config.get_option("server.corsAllowedOrigins")) if _protected() else None


def _protected() -> bool:
    """Whether Streamlit's own check of origins is on, which users behind some proxies turn off."""
    return bool(config.get_option("server.enableCORS"))
