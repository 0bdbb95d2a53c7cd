"""How who is turned away is told: in a sentence, whatever they came by, and counted."""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import HTMLResponse, PlainTextResponse, Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_AGAIN = 15  # seconds until it is worth another try
_BUSY = 503


@dataclass(frozen=True)
class Refusals:
    """Sentences for those who are turned away.

    Attributes:
        say: a sentence by the name of its reason, for whoever asked (an ASGI scope).
        count: hears each reason, for the metrics.
    """

    say: Callable[[str, Message], str]
    count: Callable[[str], None]

    def answer(self, why: str, scope: Message, status: int = _BUSY) -> Response:
        """For a program that asks: to a request, or to the handshake of a web socket."""
        return self._counted(why, PlainTextResponse(self.say(why, scope), status))

    def page(self, why: str, scope: Message) -> Response:
        """For a person: a page that asks again by itself."""
        refresh = f'<meta http-equiv="refresh" content="{_AGAIN}">'
        text = f'<!doctype html><meta charset="utf-8">{refresh}<p>{html.escape(self.say(why, scope))}</p>'
        return self._counted(why, HTMLResponse(text, _BUSY))

    def _counted(self, why: str, response: Response) -> Response:
        self.count(why)
        response.headers["Retry-After"] = str(_AGAIN)
        return response
