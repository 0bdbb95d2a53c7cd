"""What a part of a page asks for after its reader has left the page: nothing, for it would be drawn over the next one.

A link is followed in the moment in which a part asks for itself. Streamlit's front end sends both, the link first, and
its server would run the part of the page that was left: the new page is cleared away for it, and nothing comes instead.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from streamlit.proto.BackMsg_pb2 import BackMsg

from serving.http.refusals import App, Message, Receive, Send


class Asked:
    """Which page somebody asked for last, by what their browser sends, in its order."""

    def __init__(self) -> None:
        self._page = ""  # its hash; none as long as an address alone was asked for

    def too_late(self, message: BackMsg) -> bool:
        """Whether this asks for a part of another page than the one asked for last."""
        if message.WhichOneof("type") != "rerun_script":
            return False
        run = message.rerun_script
        if run.fragment_id:
            return self._page not in ("", run.page_script_hash)
        self._page = run.page_script_hash
        return False


class LeftPages:
    """ASGI middleware: what comes too late goes no further.

    Args:
        app: what comes after.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        asked = Asked()

        async def hear() -> Message:
            while True:
                message = await receive()
                if scope["type"] != "websocket" or not _is_late(asked, message.get("bytes")):
                    return message

        await self._app(scope, hear, send)


def _is_late(asked: Asked, data: bytes | None) -> bool:
    try:
        return data is not None and asked.too_late(BackMsg.FromString(data))
    except DecodeError:
        return False  # Streamlit says what it thinks of it
