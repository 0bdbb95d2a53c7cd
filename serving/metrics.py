"""Metrics for Prometheus, without anything that a visitor typed or that identifies a visitor, on a port of their own.

Health and readiness are answered there too, by threads that do not wait for the pages.
"""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, make_wsgi_app
from prometheus_client.exposition import generate_latest

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)


class Metrics:
    """Sessions, computations, latency, queue, refusals and memory of this process; slots report their jobs to it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._work_seconds = self._histogram("atlas_computation_seconds", "Computation time, by kind", "kind")
        self._wait_seconds = self._histogram("atlas_queue_seconds", "Time in the queue", "kind", "address")
        self._refusals = self._counter("atlas_refusals", "Computations refused by a full queue, by kind", "kind")
        self._outcomes = self._counter("atlas_computations", "Computations, by kind and outcome", "kind", "outcome")
        self._failures = self._counter("atlas_failures", "Pages that failed, by error", "error")
        self._rejections = self._counter("atlas_turned_away", "Refused visitors and messages, by reason", "why")
        self._ready = self._gauge("atlas_ready", "1 once the models are loaded, 0 again when the server stops")
        self._lag = self._gauge("atlas_event_loop_lag_seconds", "Longest delay of the event loop in the last minute")
        self._running = self._gauge("atlas_running", "Running computations")
        self._waiting = self._gauge("atlas_waiting", "Computations in the queue")
        self._sessions = self._gauge("atlas_sessions", "Open sessions")
        self._session_bytes = self._gauge("atlas_session_bytes", "Bytes of uploads and widget state of all sessions")
        self._cached = self._gauge("atlas_kept_results", "Cached results")
        self._cached_bytes = self._gauge("atlas_kept_bytes", "Bytes of cached results")
        self.batch_sizes = batch_sizes(self.registry)

    def observe_wait(self, kind: str, seconds: float, new: bool) -> None:
        """Count a wait in the queue; `new` if nothing else of its address was running or waiting when it came."""
        self._wait_seconds.labels(kind, "new" if new else "known").observe(seconds)

    def observe_work(self, kind: str, seconds: float, outcome: str) -> None:
        self._work_seconds.labels(kind).observe(seconds)
        self._outcomes.labels(kind, outcome).inc()

    def count_refusal(self, kind: str) -> None:
        self._refusals.labels(kind).inc()

    def count_failure(self, error: str) -> None:
        self._failures.labels(error).inc()

    def count_rejection(self, why: str) -> None:
        self._rejections.labels(why).inc()

    def watch_ready(self, ready: Callable[[], bool]) -> None:
        self._ready.set_function(lambda: float(ready()))

    def watch_loop(self, lag: Callable[[], float]) -> None:
        self._lag.set_function(lag)

    def watch_slots(self, count: Callable[[], tuple[int, int]]) -> None:
        """Report slots; `count` returns how many jobs run and how many wait."""
        self._running.set_function(lambda: count()[0])
        self._waiting.set_function(lambda: count()[1])

    def watch_sessions(self, count: Callable[[], int], nbytes: Callable[[], int]) -> None:
        """Report sessions; `count` returns their number, `nbytes` their size."""
        self._sessions.set_function(count)
        self._session_bytes.set_function(nbytes)

    def watch_cache(self, size: Callable[[], tuple[int, int]]) -> None:
        """Report the cache; `size` returns the number of results and their bytes."""
        self._cached.set_function(lambda: size()[0])
        self._cached_bytes.set_function(lambda: size()[1])

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(name, about, labels, registry=self.registry, buckets=_SECONDS)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, registry=self.registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(name, about, registry=self.registry)


def batch_sizes(registry: CollectorRegistry) -> Histogram:
    """Return the metric of how many sentences the workers of this process translate together."""
    about = "Sentences that were translated together"
    return Histogram("atlas_batch_size", about, registry=registry, buckets=(1, 2, 4, 8, 16))


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
