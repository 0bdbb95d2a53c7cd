"""Health, readiness and metrics on an address of their own, answered by threads while the event loop is busy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

_TIMEOUT = 10.0  # seconds for a request to arrive

Check = Callable[[], tuple[bool, str]]
"""Returns whether all is well, and a line that says so."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _ServerOnIPv6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = _TIMEOUT

    def log_message(self, *_args: object) -> None:
        """Log nothing: a request every few seconds."""


@contextmanager
def operations_served(address: str, registry: CollectorRegistry, checks: Mapping[str, Check]) -> Iterator[None]:
    """Serve `checks`, by path, and the metrics of `registry` at `HOST:PORT`; nowhere if the address is empty."""
    if not address:
        yield
        return
    metrics = make_wsgi_app(registry)

    def answer(environ: Any, start_response: Any) -> Iterable[bytes]:
        check = checks.get(environ["PATH_INFO"])
        if check is None:
            return metrics(environ, start_response)
        well, line = check()
        status = "200 OK" if well else "503 Service Unavailable"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [line.encode()]

    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    server = make_server(host, int(port), answer, _ServerOnIPv6 if ":" in host else _Server, _Handler)
    thread = threading.Thread(target=server.serve_forever, name="operations", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
