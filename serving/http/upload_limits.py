"""Limits on uploads: files in transfer, and bytes stored for a session, an address and in total."""

from collections.abc import Callable
from dataclasses import dataclass

from serving.http.access import FORBIDDEN, App, Message, Receive, Refusals, Send
from serving.http.websocket_gate import address_of

_ROUTE = "/_stcore/upload_file/"
_CHANGES = ("PUT", "DELETE")
_NO_SPACE = 507  # RFC 4918, section 11.5


@dataclass(frozen=True)
class StoredFiles:
    """Access to the stored files."""

    nbytes: Callable[[str | None], int]  # returns the bytes of a session, by its id, or of all sessions (None)
    trim: Callable[[str, int], int]  # deletes a session's oldest files beyond a number of bytes; returns how many
    # returns whether a request (an ASGI scope) comes from the browser of a session
    is_owner: Callable[[str, Message], bool] = lambda _session, _scope: True


class UploadLimits:
    """ASGI middleware around Streamlit's upload route.

    Args:
        app: the next application.
        max_transfers: files that may arrive at once.
        session_bytes: stored for a session; its oldest files are deleted first.
        address_bytes: stored for all sessions of one address; more are refused.
        total_bytes: stored for all sessions; more are refused.
        stored: access to the stored files.
        refusals: answers to refused visitors.
    """

    def __init__(
        self,
        app: App,
        max_transfers: int,
        session_bytes: int,
        address_bytes: int,
        total_bytes: int,
        stored: StoredFiles,
        refusals: Refusals,
    ) -> None:
        self._app, self._stored, self._refusals = app, stored, refusals
        self._max_transfers, self._session_bytes = max_transfers, session_bytes
        self._address_bytes, self._total_bytes = address_bytes, total_bytes
        self._transfers = 0
        self._senders: dict[str, str] = {}  # addresses, by session

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        session = scope.get("path", "").partition(_ROUTE)[2].partition("/")[0]
        if scope["type"] != "http" or scope["method"] not in _CHANGES or not session:
            await self._app(scope, receive, send)
        elif not self._stored.is_owner(session, scope):
            await self._refusals.answer("foreign-session", scope, FORBIDDEN)(scope, receive, send)
        elif scope["method"] != "PUT":
            await self._app(scope, receive, send)
        elif self._full(address_of(scope)):
            await self._refusals.answer("too-many-uploads", scope)(scope, receive, send)
        else:
            self._transfers += 1
            try:
                await self._app(scope, receive, send)
            except OSError:  # a large file is spooled to disk while it arrives
                await self._refusals.answer("no-space", scope, _NO_SPACE)(scope, receive, send)
            finally:
                self._transfers -= 1
                self._senders[session] = address_of(scope)  # not earlier: `_full` drops sessions without files
                if self._stored.trim(session, self._session_bytes):
                    self._refusals.count("old-uploads")

    def _full(self, address: str) -> bool:
        """Whether uploads from this address are refused. Sessions without files are dropped."""
        nbytes = {session: self._stored.nbytes(session) for session in self._senders}
        self._senders = {session: sender for session, sender in self._senders.items() if nbytes[session]}
        return (
            self._transfers >= self._max_transfers
            or sum(nbytes[session] for session, sender in self._senders.items() if sender == address)
            >= self._address_bytes
            or self._stored.nbytes(None) >= self._total_bytes
        )
