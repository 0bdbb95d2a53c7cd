"""Health, readiness, metrics and a stop that cuts nobody short."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import urllib.request
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.serving import free_port
from serving.compute.slots import BusyError, Slots
from serving.metrics import Metrics
from serving.process.lifecycle import ServerLifecycle

TIMEOUT = 60.0


def server(warm: Callable[[], object], stop_seconds: float = TIMEOUT) -> tuple[ServerLifecycle, Slots, Metrics]:
    metrics = Metrics()
    slots = Slots(1, 4, TIMEOUT, metrics)
    metrics.watch_slots(slots.count)
    return ServerLifecycle(warm, lambda: slots, lambda: metrics, stop_seconds), slots, metrics


def app(operations: ServerLifecycle) -> Starlette:
    return Starlette(routes=list(operations.routes()), lifespan=operations.lifespan)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not true():
            await asyncio.sleep(0.01)


def test_ready_once_the_models_are_loaded_and_healthy_before() -> None:
    go = threading.Event()
    operations, _, metrics = server(lambda: go.wait(TIMEOUT))
    with TestClient(app(operations)) as client:
        assert client.get("/healthz").text == "ok"
        assert client.get("/readyz").status_code == 503
        assert "atlas_ready 0.0" in metrics.text().decode()
        go.set()
        while not operations.ready:
            pass
        assert client.get("/readyz").status_code == 200
        assert "atlas_ready 1.0" in metrics.text().decode()
    assert not operations.ready


@pytest.mark.attack("disorder")
def test_without_its_models_a_server_stays_unready() -> None:
    tried = threading.Event()

    def broken() -> None:
        tried.set()
        raise ValueError("the file of the model is cut short")

    operations, _, _ = server(broken)
    with TestClient(app(operations)) as client:
        assert tried.wait(TIMEOUT)
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200


def test_what_could_not_be_loaded_is_tried_again() -> None:
    """A pool of machines may come up after its front ends."""
    tries: list[int] = []

    def late() -> None:
        tries.append(len(tries))
        if len(tries) < 3:
            raise ValueError("no pool yet")

    slots, metrics = Slots(1, 1, TIMEOUT, Metrics()), Metrics()
    operations = ServerLifecycle(late, lambda: slots, lambda: metrics, TIMEOUT, first_pause=0.01)
    with TestClient(app(operations)) as client:
        while not operations.ready:
            pass
        assert client.get("/readyz").status_code == 200
    assert tries == [0, 1, 2]


def test_metrics_are_what_prometheus_reads() -> None:
    metrics = Metrics()
    slots = Slots(1, 4, TIMEOUT, metrics)
    metrics.watch_slots(slots.count)
    address = f"127.0.0.1:{free_port()}"
    operations = ServerLifecycle(lambda: None, lambda: slots, lambda: metrics, TIMEOUT, metrics_address=address)
    metrics.watch_sessions(lambda: 7, lambda: 2048)
    metrics.watch_cache(lambda: (3, 12_345))
    metrics.count_failure("KeyError")
    slots.submit("translation", lambda: None).result()
    metrics.count_rejection("too-fast")
    with TestClient(app(operations)) as client:
        assert client.get("/metrics").status_code == 404, "visitors come to another port"
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT) as response:
            answer = response.read().decode()
            assert response.headers["content-type"].startswith("text/plain; version=")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer)
        for sample in family.samples
    }
    assert samples["atlas_sessions",] == 7
    assert samples["atlas_session_bytes",] == 2048
    assert samples["atlas_turned_away_total", "too-fast"] == 1
    assert samples["atlas_kept_results",] == 3
    assert samples["atlas_kept_bytes",] == 12_345
    assert samples["atlas_failures_total", "KeyError"] == 1
    assert samples["atlas_computations_total", "translation", "done"] == 1
    assert samples["atlas_computation_seconds_count", "translation"] == 1
    assert samples["atlas_queue_seconds_count", "translation"] == 1
    assert samples["atlas_running",] == samples["atlas_waiting",] == 0
    assert samples["process_resident_memory_bytes",] > 10**7


@pytest.mark.attack("disorder")
def test_a_server_that_stops_finishes_what_it_has_begun() -> None:
    """The first signal ends readiness; the server is told to stop only when nothing is at work any more."""
    operations, slots, _ = server(lambda: None)
    stopped: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    go, begun = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert go.wait(TIMEOUT)
        return "finished"

    async def run() -> None:
        async with operations.lifespan(None):
            await until(lambda: operations.ready)
            job = slots.submit("work", work)
            assert begun.wait(TIMEOUT)
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: not operations.ready)
            assert stopped == []
            go.set()
            await until(lambda: bool(stopped))
            assert job.result() == "finished"

    try:
        asyncio.run(run())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stopped == [signal.SIGTERM]
    with pytest.raises(BusyError):
        slots.submit("late", lambda: None)


@pytest.mark.attack("disorder")
def test_a_second_signal_stops_at_once() -> None:
    operations, slots, _ = server(lambda: None, stop_seconds=0.05)
    stopped: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    go = threading.Event()

    async def run() -> None:
        async with operations.lifespan(None):
            slots.submit("work", lambda: go.wait(TIMEOUT))
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: not operations.ready)
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: bool(stopped))

    try:
        asyncio.run(run())
    finally:
        go.set()
        signal.signal(signal.SIGTERM, before)
    assert stopped
