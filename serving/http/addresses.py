"""Addresses of visitors, in the form in which they are counted."""

from __future__ import annotations

import ipaddress

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
