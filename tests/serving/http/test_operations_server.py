"""Health is answered while the event loop is busy, and says so once it is stuck."""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry

from benchmarks.serving import free_port
from serving.compute.slots import Slots
from serving.metrics import Metrics, operations_served
from serving.process import lifecycle
from serving.process.lifecycle import ServerLifecycle

TIMEOUT = 60.0


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


def test_without_an_address_nothing_is_served() -> None:
    with operations_served("", CollectorRegistry(), {}):
        pass


@pytest.mark.attack("connections")
def test_health_answers_while_the_event_loop_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    metrics = Metrics()
    slots = Slots(1, 4, TIMEOUT, metrics)
    operations = ServerLifecycle(lambda: None, lambda: slots, lambda: metrics, TIMEOUT, metrics_address=address)

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
