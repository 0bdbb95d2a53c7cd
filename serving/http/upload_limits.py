"""Files that visitors send: so many on the way at once, so many bytes kept for each session, each address and all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from serving.http.refusals import App, Message, Receive, Refusals, Send
from serving.http.websocket_gate import address_of

_ROUTE = "/_stcore/upload_file/"
_NO_SPACE = 507  # RFC 4918, section 11.5


@dataclass(frozen=True)
class Kept:
    """What is kept.

    Attributes:
        nbytes: of a session, by its id, or of all.
        tidy: lets go of a session's oldest files beyond so many bytes; how many went.
    """

    nbytes: Callable[[str | None], int]
    tidy: Callable[[str, int], int]


class Uploads:
    """ASGI middleware around the route that takes files.

    Args:
        app: what comes after.
        on_the_way: files that may arrive at once.
        of_a_session: bytes that a session keeps; its oldest files go first.
        of_an_address: bytes that all sessions of one address keep; more are refused.
        of_all: the same of all sessions.
        kept: what is kept.
        refusals: how who is turned away is told.
    """

    def __init__(
        self,
        app: App,
        on_the_way: int,
        of_a_session: int,
        of_an_address: int,
        of_all: int,
        kept: Kept,
        refusals: Refusals,
    ) -> None:
        self._app, self._kept, self._refusals = app, kept, refusals
        self._on_the_way, self._of_a_session = on_the_way, of_a_session
        self._of_an_address, self._of_all = of_an_address, of_all
        self._arriving = 0
        self._senders: dict[str, str] = {}  # addresses, by session

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "PUT" or _ROUTE not in scope["path"]:
            await self._app(scope, receive, send)
        elif self._full(address_of(scope)):
            await self._refusals.answer("too-many-uploads", scope)(scope, receive, send)
        else:
            self._arriving += 1
            try:
                await self._app(scope, receive, send)
            except OSError:  # a large file lies on the disk until it has come whole
                await self._refusals.answer("no-space", scope, _NO_SPACE)(scope, receive, send)
            finally:
                self._arriving -= 1
                session = scope["path"].partition(_ROUTE)[2].partition("/")[0]
                self._senders[session] = address_of(scope)  # not before: who keeps nothing yet is forgotten by the next
                if self._kept.tidy(session, self._of_a_session):
                    self._refusals.count("old-uploads")

    def _full(self, address: str) -> bool:
        """Whether nothing more can come from there; who left is forgotten."""
        held = {session: self._kept.nbytes(session) for session in self._senders}
        self._senders = {session: sender for session, sender in self._senders.items() if held[session]}
        here = sum(held[session] for session, sender in self._senders.items() if sender == address)
        return (
            self._arriving >= self._on_the_way or here >= self._of_an_address or self._kept.nbytes(None) >= self._of_all
        )
