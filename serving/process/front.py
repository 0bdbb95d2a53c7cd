"""The front of several processes of pages: HAProxy, configured from the settings, which keeps a browser at its process.

By a cookie, for pages, web sockets, uploads and media alike. A browser without the cookie comes to the process with the
fewest connections, not to one by its address: a class behind one router has one address.
"""

import ipaddress
import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress

from serving.settings import Settings
from serving.uvicorn_internals.limits import Limits

COOKIE = "atlas-process"
TRUSTED = "FORWARDED_ALLOW_IPS"
"""The variable in which uvicorn finds the proxies that it trusts."""

_LOCAL = "127.0.0.1"
_CONNECTIONS = 8  # of a browser that loads a page
_SYSTEM = ("/usr/sbin", "/usr/local/sbin")  # not in everybody's PATH


def find_haproxy() -> str | None:
    """Return the path of HAProxy, or None."""
    return shutil.which("haproxy", path=os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM]))


def trusted_proxies() -> str:
    """Return the proxies before this server whose word on visitors' addresses counts, as uvicorn reads them."""
    return os.environ.get(TRUSTED, _LOCAL)


def configuration(
    allowed: Settings, address: str | None, port: int, processes: Sequence[int], same_site: str = "lax"
) -> str:
    """Return HAProxy's configuration before the processes of pages at these ports of this machine.

    Args:
        allowed: the settings of the whole server.
        address: that it listens on; None for all.
        port: that it listens on.
        processes: ports of the processes.
        same_site: value of the cookie's attribute SameSite.
    """
    binds = "\n".join(f"    bind {one}" for one in _binds(address, port))
    servers = "\n".join(f"    server pages-{one} {_LOCAL}:{each} cookie {one}" for one, each in enumerate(processes))
    secure = " secure" if same_site.lower() == "none" else ""
    return f"""\
global
    maxconn {_CONNECTIONS * allowed.max_visitors}
    no strict-limits  # fewer, where the system allows fewer
    nbthread 1

defaults
    mode http
    option redispatch 1
    option forwardfor
    retries {len(processes) + 1}
    retry-on conn-failure empty-response  # what a process was asked as it died, the next one answers
    timeout connect 5s
    timeout client {Limits.body_seconds:.0f}s
    timeout server {Limits.body_seconds:.0f}s
    timeout tunnel 1h  # an open page is a web socket, with a ping every 30 seconds
    timeout http-request {Limits.head_seconds:.0f}s
    timeout http-keep-alive {Limits.head_seconds / 2:.0f}s
    timeout client-fin 10s
    timeout check 10s

frontend visitors
{binds}
{_distrust()}\
    http-request disable-l7-retry unless METH_GET  # an upload is not sent twice
    default_backend pages

backend pages
    balance leastconn
    cookie {COOKIE} insert indirect nocache httponly{secure} attr SameSite={same_site.capitalize()}
    option httpchk GET /healthz
    http-check expect status 200
    # Down within seconds when it has died, and after half a minute when it is stuck; its visitors then go elsewhere.
    default-server check inter 2s fastinter 500ms fall 3 rise 1 on-marked-down shutdown-sessions pool-max-conn 0
{servers}
"""


def _binds(address: str | None, port: int) -> Iterator[str]:
    if address:
        yield f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        return
    yield f"*:{port}"
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:  # a system without IPv6
        probe.bind(("::1", 0))
        yield f"[::]:{port} v6only"


def _distrust() -> str:
    """Rules that delete what anybody but a trusted proxy says of a visitor's address."""
    if (names := trusted_proxies()) == "*":
        return ""
    networks = []
    for name in names.split(","):
        with suppress(ValueError):  # such as the name of a socket in the file system
            networks.append(str(ipaddress.ip_network(name.strip(), strict=False)))
    unless = " unless { src " + " ".join(networks) + " }" if networks else ""
    headers = ("forwarded -m str", "x-real-ip -m str", "x-forwarded- -m beg")
    return "".join(f"    http-request del-header {header}{unless}\n" for header in headers)
