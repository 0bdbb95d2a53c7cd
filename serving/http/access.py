"""Who may connect: addresses, rates, the names a server answers to, the sites that may open a session, and refusals.

A page of another site can open a web socket to any address, and with DNS rebinding (its own name, pointed at this
machine) it even counts as the same site. Streamlit checks both, but too late, and it trusts pages of localhost.
"""

import html
import ipaddress
import re
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import HTMLResponse, PlainTextResponse, Response

_NETWORK = 64  # bits of an IPv6 address; a household or a lecture hall has all addresses below them (RFC 6177)


def unmapped(address: str) -> str:
    """Return an IPv4 address in its own form, where a server that listens on IPv6 reports it as ::ffff:127.0.0.1."""
    parsed = _parsed(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return address if mapped is None else str(mapped)


def network_of(address: str) -> str:
    """Return the address that limits count: an IPv4 address, the /64 network of an IPv6 one, or text as it is."""
    plain = unmapped(address)
    if not isinstance(_parsed(plain), ipaddress.IPv6Address):
        return plain
    return str(ipaddress.IPv6Network((plain.partition("%")[0], _NETWORK), strict=False))


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


class TokenBucket:
    """A bucket that refills at a steady rate (ITU-T I.371).

    Args:
        rate: tokens added each second.
        burst: initial and maximum number of tokens.
        clock: returns seconds since any moment.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._updated = burst, clock()

    def spend(self, cost: float = 1.0) -> float:
        """Take tokens, on credit where there are too few; return the seconds until the debt is paid back."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate) - cost
        self._updated = now
        return max(0.0, -self._tokens / self._rate)


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_RETRY_AFTER = 15  # seconds
_BUSY = 503
FORBIDDEN = 403


@dataclass(frozen=True)
class Refusals:
    """Sentences for refused visitors."""

    # returns the sentence for a reason, in the language of a request (an ASGI scope)
    sentence: Callable[[str, Message], str]
    count: Callable[[str], None]  # counts a reason, for the metrics

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
