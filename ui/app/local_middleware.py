"""ASGI middleware of the app on one's own machine. It imports nothing heavy."""

from __future__ import annotations

from math import inf

from starlette.middleware import Middleware

from serving.http.refusals import Refusals
from serving.http.websocket_gate import GateLimits, WebSocketGate
from ui.streamlit_internals.mailbox import Mailbox
from ui.streamlit_internals.self_test import works

_MANY = 2**31
_UNLIMITED = GateLimits(_MANY, _MANY, silent_seconds=inf, messages=_MANY, messages_an_address=_MANY)


def local_middleware() -> list[Middleware]:
    """The middleware that brings requests up to date, without any limit."""
    if not works("message_filter"):
        return []
    return [Middleware(WebSocketGate, _UNLIMITED, Mailbox, Refusals(lambda why, _scope: why, lambda _why: None))]
