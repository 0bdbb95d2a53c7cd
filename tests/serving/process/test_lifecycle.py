"""Health, readiness, metrics and a stop that cuts nobody short; how late the event loop is."""

import asyncio
import logging
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.serving import free_port
from serving.compute.slots import BusyError, Slots
from serving.metrics import Metrics, operations_served
from serving.process import background, lifecycle
from serving.process.background import background_lifespan, start_background_work
from serving.process.lifecycle import LoopMonitor, ServerLifecycle


def test_a_delay_is_seen_while_it_lasts_and_the_longest_of_a_minute_afterwards() -> None:
    now = 0.0
    monitor = LoopMonitor(lambda: now)
    # How late the loop comes round each time, and the longest lag then.
    for lags, longest in (([0.0] * 3, 0), ([3.0, 0, 1, 0], 3), ([0.0] * 590, 1), ([0.0] * 40, 0)):
        for lag in lags:
            now += 0.1 + lag
            monitor.beat()
        assert monitor.longest_lag() == pytest.approx(longest, abs=1e-9)
    now += 5
    assert monitor.longest_lag() == monitor.busy_seconds() == pytest.approx(4.9)


TIMEOUT = 60.0


def server(
    warm: Callable[[], object] = lambda: None,
    stop_seconds: float = TIMEOUT,
    address: str = "",
    first_pause: float = 5.0,
) -> tuple[ServerLifecycle, Slots, Metrics]:
    metrics = Metrics()
    slots = Slots(1, 4, TIMEOUT, metrics)
    metrics.watch_slots(slots.count)
    return ServerLifecycle(warm, lambda: slots, lambda: metrics, stop_seconds, first_pause, address), slots, metrics


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Signals to stop that reach the server."""
    signals: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))
    yield signals
    signal.signal(signal.SIGTERM, before)


def app(operations: ServerLifecycle) -> Starlette:
    return Starlette(routes=list(operations.routes()), lifespan=operations.lifespan)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not true():
            await asyncio.sleep(0.01)


@pytest.mark.attack("disorder")
def test_what_could_not_be_loaded_is_tried_again_and_until_then_a_server_is_unready() -> None:
    """A pool of machines may come up after its front ends."""
    tries: list[int] = []
    go = threading.Event()

    def late() -> None:
        tries.append(len(tries))
        if len(tries) < 3 or not go.is_set():
            raise ValueError("no pool yet")

    operations, _, metrics = server(late, first_pause=0.001)
    with TestClient(app(operations)) as client:
        while not tries:
            pass
        assert [client.get(path).status_code for path in ("/readyz", "/healthz")] == [503, 200]
        assert "atlas_ready 0.0" in metrics.text().decode()
        go.set()
        while not operations.ready:
            pass
        assert client.get("/readyz").status_code == 200
        assert "atlas_ready 1.0" in metrics.text().decode()
    assert len(tries) >= 3
    assert not operations.ready


def test_metrics_are_what_prometheus_reads() -> None:
    address = f"127.0.0.1:{free_port()}"
    operations, slots, metrics = server(address=address)
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
    assert samples["atlas_queue_seconds_count", "new", "translation"] == 1
    assert samples["atlas_running",] == samples["atlas_waiting",] == 0
    assert samples["process_resident_memory_bytes",] > 10**7


@pytest.mark.attack("disorder")
def test_a_server_that_stops_finishes_what_it_has_begun(stopped: list[int]) -> None:
    """The first signal ends readiness; the server is told to stop only when nothing is at work any more."""
    operations, slots, _ = server()
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

    asyncio.run(run())
    assert stopped == [signal.SIGTERM]
    with pytest.raises(BusyError):
        slots.submit("late", lambda: None)


@pytest.mark.attack("disorder")
def test_a_second_signal_stops_at_once(stopped: list[int]) -> None:
    operations, slots, _ = server(stop_seconds=0.05)
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


def answer(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_checks_are_answered_by_path(host: str) -> None:
    address = f"{host}:{free_port()}"
    checks = {"/healthz": lambda: (True, "ok"), "/readyz": lambda: (False, "not ready")}
    with operations_served(address, CollectorRegistry(), checks):
        assert answer(f"http://{address}/healthz") == (200, "ok")
        assert answer(f"http://{address}/readyz") == (503, "not ready")
        assert answer(f"http://{address}/metrics")[0] == 200


@pytest.mark.attack("connections")
def test_health_answers_while_the_event_loop_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    operations, _, _ = server(address=address)

    async def run() -> tuple[list[tuple[int, str]], str]:
        async with operations.lifespan(None):
            while not operations.ready:
                await asyncio.sleep(0.01)
            with ThreadPoolExecutor(1) as client:
                busy = [client.submit(answer, f"http://{address}/healthz").result()]  # waits, and the loop with it
                monkeypatch.setattr(lifecycle, "_STUCK", 0.01)
                time.sleep(0.2)
                busy.append(client.submit(answer, f"http://{address}/healthz").result())
                return busy, client.submit(answer, f"http://{address}/metrics").result()[1]

    busy, text = asyncio.run(run())
    assert busy == [(200, "ok"), (503, "the event loop does not answer")]
    lag = next(line for line in text.splitlines() if line.startswith("atlas_event_loop_lag_seconds "))
    assert float(lag.split()[1]) >= 0.1


def test_the_server_is_up_while_the_work_goes_on_and_after_it_failed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_started", threading.Event())  # pages of other tests have been served already
    up, done = threading.Event(), threading.Event()

    def work() -> None:
        assert up.wait(60)
        done.set()
        raise ValueError("nothing to import")

    async def serve() -> None:
        async with background_lifespan(work, timeout=60)(None):
            assert not done.is_set()
            up.set()
            assert not done.wait(0.1)  # no visitor has come yet
            start_background_work()
            for thread in threading.enumerate():
                if thread.name == "background":
                    thread.join(60)

    with caplog.at_level(logging.WARNING, logger="atlas"):
        asyncio.run(serve())
    assert done.is_set()
    assert [record.msg["event"] for record in caplog.records] == ["background work failed"]
