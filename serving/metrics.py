"""What a server counts, for Prometheus. Never what a visitor typed, nor who a visitor is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest, start_http_server

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)


class Metrics:
    """Sessions, computations, latency, queue, refusals and memory of this process. An observer of its slots."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._worked = self._times("atlas_computation_seconds", "Time at work, by kind")
        self._waited = self._times("atlas_queue_seconds", "Time in the queue, by kind")
        self._refused = self._counter("atlas_refusals", "Asked for while the queue was full, by kind", "kind")
        self._outcomes = self._counter("atlas_computations", "Computations, by kind and outcome", "kind", "outcome")
        self._failures = self._counter("atlas_failures", "Pages that failed, by error", "error")
        self._turned_away = self._counter("atlas_turned_away", "What visitors were refused, by why", "why")
        self._ready = self._gauge("atlas_ready", "1 once the models are loaded, 0 again when the server stops")
        self._running = self._gauge("atlas_running", "Computations at work now")
        self._waiting = self._gauge("atlas_waiting", "Computations in the queue now")
        self._sessions = self._gauge("atlas_sessions", "Visitors now")
        self._session_bytes = self._gauge("atlas_session_bytes", "Bytes of their uploads and of what they chose")
        self._kept = self._gauge("atlas_kept_results", "Results kept for whoever asks the same again")
        self._kept_bytes = self._gauge("atlas_kept_bytes", "Bytes of these results")

    def waited(self, kind: str, seconds: float) -> None:
        self._waited.labels(kind).observe(seconds)

    def worked(self, kind: str, seconds: float, outcome: str) -> None:
        self._worked.labels(kind).observe(seconds)
        self._outcomes.labels(kind, outcome).inc()

    def refused(self, kind: str) -> None:
        self._refused.labels(kind).inc()

    def failed(self, error: str) -> None:
        self._failures.labels(error).inc()

    def turned_away(self, why: str) -> None:
        self._turned_away.labels(why).inc()

    def watch_ready(self, ready: Callable[[], bool]) -> None:
        self._ready.set_function(lambda: float(ready()))

    def watch_slots(self, count: Callable[[], tuple[int, int]]) -> None:
        """`count` tells how many run and how many wait."""
        self._running.set_function(lambda: count()[0])
        self._waiting.set_function(lambda: count()[1])

    def watch_sessions(self, count: Callable[[], int], nbytes: Callable[[], int]) -> None:
        """`count` tells how many there are, `nbytes` what they hold."""
        self._sessions.set_function(count)
        self._session_bytes.set_function(nbytes)

    def watch_kept(self, size: Callable[[], tuple[int, int]]) -> None:
        """`size` tells how many results there are, and their bytes."""
        self._kept.set_function(lambda: size()[0])
        self._kept_bytes.set_function(lambda: size()[1])

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)

    @contextmanager
    def served(self, address: str) -> Iterator[None]:
        """Told to whoever asks at `HOST:PORT`, which is not where visitors come; nowhere, where that is empty."""
        if not address:
            yield
            return
        host, _, port = address.rpartition(":")
        server, thread = start_http_server(int(port), host.strip("[]"), self.registry)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _times(self, name: str, about: str) -> Histogram:
        return Histogram(name, about, ("kind",), registry=self.registry, buckets=_SECONDS)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, registry=self.registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(name, about, registry=self.registry)
