"""Answers to refused visitors: a sentence, by whatever protocol they came, and a count."""

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

_RETRY_AFTER = 15  # seconds
_BUSY = 503
FORBIDDEN = 403


@dataclass(frozen=True)
class Refusals:
    """Sentences for refused visitors.

    Attributes:
        sentence: returns the sentence for a reason, in the language of a request (an ASGI scope).
        count: counts a reason, for the metrics.
    """

    sentence: Callable[[str, Message], str]
    count: Callable[[str], None]

    def answer(self, why: str, scope: Message, status: int = _BUSY) -> Response:
        """Return a plain-text response, to a request or to the handshake of a web socket."""
        return self._counted(why, PlainTextResponse(self.sentence(why, scope), status))

    def page(self, why: str, scope: Message) -> Response:
        """Return a page that reloads itself."""
        refresh = f'<meta http-equiv="refresh" content="{_RETRY_AFTER}">'
        text = f'<!doctype html><meta charset="utf-8">{refresh}<p>{html.escape(self.sentence(why, scope))}</p>'
        return self._counted(why, HTMLResponse(text, _BUSY))

    def _counted(self, why: str, response: Response) -> Response:
        self.count(why)
        if response.status_code == _BUSY:
            response.headers["Retry-After"] = str(_RETRY_AFTER)
        return response
