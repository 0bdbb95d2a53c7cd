"""A pool of workers that several processes share: the same answers, also after its process was replaced."""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError, BusyError, client_in_slot, timer_in_slot, working_for
from serving.compute.turns import Client
from serving.requests.models import ModelRegistry, ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners import shared_pool
from serving.runners.remote import RemoteRunner
from serving.runners.runner import LocalRunner
from serving.runners.shared_pool import PoolClient, serve_pool
from serving.runners.worker_pool import WorkerPool
from tests.serving.runners.worker_functions import complain, process, wait_to_be_ended
from viz_core.pretrained import TextError
from viz_core.runtime.hooks import CpuTimer, interruptible

MODEL = ShippedTranslator("transformer-en-fr")
CALM = TranslationRequest(MODEL, "He is calm.")
TIMEOUT = 120.0


def started(address: str) -> Any:
    made = multiprocessing.get_context("spawn").Process(target=serve_pool, args=(address, 1))
    made.start()
    return made


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Its address and its process."""
    monkeypatch.setattr(shared_pool, "_TIMEOUT", TIMEOUT)
    address = str(tmp_path / "pool")
    serving = started(address)
    yield address, serving
    serving.terminate()
    serving.join(TIMEOUT)
    assert serving.exitcode in (0, -9)


@pytest.mark.slow
@pytest.mark.attack("disorder")
def test_answers_errors_and_a_replaced_process(pool: tuple[str, Any], tmp_path: Path) -> None:
    address, serving = pool
    client = PoolClient(address)
    runner, here = RemoteRunner(client.execute, LRUCache(10, 2**24)), LocalRunner(ModelRegistry(), LRUCache(10, 2**24))
    assert runner.run(CALM).target_ids == here.run(CALM).target_ids
    with pytest.raises(TextError):
        runner.run(TranslationRequest(MODEL, " "))
    with pytest.raises(RuntimeError, match="WordyError: this and that"):
        runner.evaluate(CALM, complain)
    worker = client.execute("evaluate_model", MODEL, process)
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda _: client.execute("evaluate_model", MODEL, process), range(8))
        assert set(found) == {worker}

    left = tmp_path / "left"
    end = time.monotonic() + 0.5

    def leave() -> None:
        if time.monotonic() > end:
            raise AbandonedError("test")

    with interruptible(leave), pytest.raises(AbandonedError):
        client.execute("evaluate_model", MODEL, wait_to_be_ended, str(left))
    assert client.execute("evaluate_model", MODEL, process) == worker, "nobody waited for the call before, which ended"
    assert left.exists()

    serving.kill()
    serving.join()
    replacement: list[Any] = []
    later = threading.Timer(0.5, lambda: replacement.append(started(address)))
    later.start()
    assert client.execute("evaluate_model", MODEL, process) != worker
    replacement[0].terminate()
    replacement[0].join(TIMEOUT)
    assert replacement[0].exitcode == 0


def test_without_its_process_the_pool_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_pool, "_TIMEOUT", 0.2)
    with pytest.raises(BusyError):
        PoolClient(str(tmp_path / "nobody")).execute("evaluate_model", MODEL, process)


def test_work_counts_for_whoever_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever process of pages a visitor is with: the address, and the processor time that is left."""
    calls: list[tuple[Client, float]] = []

    def execute(_pool: WorkerPool, *_call: object) -> None:
        timer = timer_in_slot()
        assert timer is not None
        calls.append((client_in_slot(), timer.left or 0.0))
        timer.add(2.0)

    monkeypatch.setattr(WorkerPool, "execute", execute)
    address = str(tmp_path / "pool")
    monkeypatch.setattr("signal.signal", lambda *_: None)  # threads may not
    threading.Thread(target=serve_pool, args=(address, 1), daemon=True).start()
    here = CpuTimer(5.0)
    here.add(1.0)
    with working_for(Client("198.51.100.7", "a window"), here):
        PoolClient(address).execute("load", MODEL)
    assert calls == [(Client("198.51.100.7", "a window"), pytest.approx(4.0, abs=0.5))]
    assert here.seconds == pytest.approx(3.0, abs=0.5)
