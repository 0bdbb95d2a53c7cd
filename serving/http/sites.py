"""Which names a server answers to, and which other sites may open a session.

A page of another site can open a web socket to any address, and with DNS rebinding (its own name, pointed at this
machine) it even counts as the same site. Streamlit checks both, but too late, and it trusts pages of localhost.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from serving.http.refusals import Message

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/?#\[\]]+)(:\d{1,5})?")


@dataclass(frozen=True)
class Sites:
    """The names of this server and the sites it trusts; functions, since Streamlit reads its options late.

    Attributes:
        hosts: returns host names, or ["*.atlas.example"] for all below one; None for any. Addresses and localhost
            always pass: no other site has such a name.
        origins: returns the sites whose pages may open a session, besides this server's own; None for any.
    """

    hosts: Callable[[], Collection[str] | None] = lambda: None
    origins: Callable[[], Collection[str] | None] = lambda: None

    def refusal(self, scope: Message) -> str | None:
        """Return why a request or a handshake is refused, or None."""
        host, origin = (_header(scope, name) for name in (b"host", b"origin"))
        if host is not None and not self._answers_to(host):
            return "foreign-host"
        if scope["type"] != "websocket" or origin is None:
            return None  # other software than browsers sends none
        own = bool(host) and origin.partition("://")[2].lower() == str(host).lower()
        if own or (trusted := self.origins()) is None:
            return None
        return None if origin.lower() in {one.strip().lower() for one in trusted} else "foreign-origin"

    def _answers_to(self, host: str) -> bool:
        if (names := self.hosts()) is None:
            return True
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1].lower().rstrip(".")
        return _is_local(name) or any(_matches(name, one.strip().lower().rstrip(".")) for one in names)


def _matches(name: str, allowed: str) -> bool:
    return allowed in ("*", name) or (allowed.startswith("*.") and name.endswith(allowed[1:]))


def _is_local(name: str) -> bool:
    """Whether a name is an address or localhost."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _header(scope: Message, name: bytes) -> str | None:
    """Return the value of a header, "" where it comes more than once, which no browser sends."""
    values = [value for key, value in scope.get("headers", ()) if key == name]
    return (values[0].decode("latin-1") if len(values) == 1 else "") if values else None
