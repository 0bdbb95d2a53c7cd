"""A test at start: which private names of uvicorn the installed version lacks, and what does not work then."""

from collections.abc import Sequence

from viz_core.runtime import packages as private_names
from viz_core.runtime.packages import PrivateName

_HTTP = "uvicorn.protocols.http.auto:AutoHTTPProtocol"
_SOCKET = "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol"
_CYCLE = "uvicorn.protocols.http.h11_impl:RequestResponseCycle"
_UNBOUNDED = "connections that send half a request, or read no answer, stay open"
_LARGE = "a web socket's message of any size is read"
_FLOODS = "one client can fill the server's time with pings and fragments"
_MAPPED = "all visitors behind a proxy on IPv4 count as one"

PRIVATE_NAMES = (
    PrivateName("uvicorn.config:HTTP_PROTOCOLS.get", "limits", _UNBOUNDED),
    PrivateName("uvicorn.config:WS_PROTOCOLS.get", "limits", _LARGE),
    PrivateName(f"{_HTTP}.pause_writing", "limits", _UNBOUNDED),
    PrivateName(f"{_HTTP}.resume_writing", "limits", _UNBOUNDED),
    PrivateName(f"{_HTTP}.cycle", "limits", _UNBOUNDED),
    PrivateName(f"{_CYCLE}.response_complete", "limits", _UNBOUNDED),
    PrivateName(f"{_CYCLE}.more_body", "limits", _UNBOUNDED),
    PrivateName(f"{_SOCKET}.conn", "limits", _LARGE),
    PrivateName(f"{_SOCKET}.pause_writing", "limits", _UNBOUNDED),
    PrivateName("websockets.protocol:Protocol.max_message_size", "limits", _LARGE),
    PrivateName("websockets.protocol:Protocol.events", "limits", _FLOODS),
    PrivateName("websockets.protocol:Protocol.handshake_exc", "limits", _UNBOUNDED),
    PrivateName(f"{_HTTP}.client", "limits", _MAPPED),
    PrivateName(f"{_SOCKET}.client", "limits", _MAPPED),
    PrivateName(f"{_SOCKET}.handshake_initiated", "limits", _UNBOUNDED),
    PrivateName(f"{_SOCKET}.handshake_complete", "limits", _UNBOUNDED),
    PrivateName(f"{_SOCKET}.read_paused", "limits", _FLOODS),
    PrivateName(f"{_SOCKET}.handle_events", "limits", _FLOODS),
    PrivateName(f"{_SOCKET}.handle_cont", "limits", _FLOODS),
    PrivateName(f"{_SOCKET}.handle_parser_exception", "limits", _FLOODS),
    PrivateName(f"{_SOCKET}.frames", "limits", _FLOODS),
    PrivateName(f"{_SOCKET}.close_sent", "limits", _FLOODS),
)
"""Every name that `serving.uvicorn_internals` uses and that uvicorn does not document."""


def missing() -> list[PrivateName]:
    """The names that the installed uvicorn lacks."""
    return private_names.missing(PRIVATE_NAMES)


def require_names(lacking: Sequence[PrivateName]) -> None:
    """End the process with a message where a server's libraries lack names."""
    if lacking:
        lines = "".join(f"\n  {name.path}: {name.without}" for name in lacking)
        raise SystemExit(f"The installed versions lack private names that this server needs:{lines}")
