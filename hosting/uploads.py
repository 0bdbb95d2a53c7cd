"""Files that visitors send: so many on the way at once, so many bytes kept for each session and for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hosting.refusals import App, Message, Receive, Refusals, Send

_ROUTE = "/_stcore/upload_file/"
_NO_SPACE = 507  # RFC 4918, section 11.5


@dataclass(frozen=True)
class Kept:
    """What is kept.

    Attributes:
        nbytes: of all sessions.
        tidy: lets go of a session's oldest files beyond so many bytes; how many went.
    """

    nbytes: Callable[[], int]
    tidy: Callable[[str, int], int]


class Uploads:
    """ASGI middleware around the route that takes files.

    Args:
        app: what comes after.
        on_the_way: files that may arrive at once.
        of_a_session: bytes that a session keeps; its oldest files go first.
        of_all: bytes that all sessions keep; more are refused.
        kept: what is kept.
        refusals: how who is turned away is told.
    """

    def __init__(
        self, app: App, on_the_way: int, of_a_session: int, of_all: int, kept: Kept, refusals: Refusals
    ) -> None:
        self._app, self._kept, self._refusals = app, kept, refusals
        self._on_the_way, self._of_a_session, self._of_all = on_the_way, of_a_session, of_all
        self._arriving = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "PUT" or _ROUTE not in scope["path"]:
            await self._app(scope, receive, send)
        elif self._arriving >= self._on_the_way or self._kept.nbytes() >= self._of_all:
            await self._refusals.answer("too-many-uploads")(scope, receive, send)
        else:
            self._arriving += 1
            try:
                await self._app(scope, receive, send)
            except OSError:  # a large file lies on the disk until it has come whole
                await self._refusals.answer("no-space", _NO_SPACE)(scope, receive, send)
            finally:
                self._arriving -= 1
                session = scope["path"].partition(_ROUTE)[2].partition("/")[0]
                if self._kept.tidy(session, self._of_a_session):
                    self._refusals.count("old-uploads")
