"""Calls that wait for a worker: sentences in one batch, turns between addresses, processor time that is over;
and a pool of workers that several processes share."""

import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError, client_in_slot, timer_in_slot, working_for
from serving.compute.turns import Client
from serving.metrics import Metrics
from serving.requests.models import ModelRegistry, ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners import shared_pool, worker
from serving.runners.crew import Crew, Task
from serving.runners.remote import ModelServer, RemoteRunner
from serving.runners.runner import LocalRunner
from serving.runners.shared_pool import PoolClient, serve_pool
from serving.runners.worker import Call
from serving.runners.worker_pool import Worker, WorkerPool
from tests.serving.runners.worker_functions import complain, eventually, leaving, process, wait_to_be_ended
from viz_core.pretrained import TextError
from viz_core.runtime.hooks import CpuTimeError, CpuTimer, interruptible, may_end

MODEL = ShippedTranslator("transformer-en-fr")
CALM = TranslationRequest(MODEL, "He is calm.")


class Batches(ModelServer):
    """Notes which sentences come together, and takes its time with the first ones."""

    def __init__(self) -> None:
        super().__init__(lambda _model: None, LRUCache(1, 1))
        self.batches: list[int] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def outlines(self, requests: list[Any]) -> list[Any]:
        self.batches.append(len(requests))
        self.begun.set()
        while not self.go_on.is_set():
            may_end()
            time.sleep(0.01)
        return [ValueError(one.text) if one.text == "bad" else one.text for one in requests]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Batches:
    made = Batches()
    monkeypatch.setattr(worker, "server", lambda: made)
    return made


class ThreadWorker(Worker):
    """A worker in a thread of this process."""

    def _running_executor(self) -> Any:
        self._shared = self._shared or SimpleNamespace(value=0)
        worker._shared[:] = [self._shared]
        return ThreadPoolExecutor(1)


def ask(one: Worker, text: str, found: dict[str, Any], check: Callable[[], None] = lambda: None) -> threading.Thread:
    def work() -> None:
        try:
            with interruptible(check):
                found[text] = one.execute("outline", TranslationRequest(MODEL, text))
        except Exception as error:
            found[text] = error

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_sentences_that_wait_are_translated_together(batches: Batches) -> None:
    metrics = Metrics()
    crew, found = Crew(metrics.batch_sizes.observe), dict[str, Any]()
    one = ThreadWorker(crew)
    waiting = [ask(one, "first", found)]
    assert batches.begun.wait(60)
    texts = ["bad" if number == 7 else f"sentence {number}" for number in range(19)]
    waiting += [ask(one, text, found) for text in texts]
    eventually(lambda: len(one._waiting) == 19)
    batches.go_on.set()
    for thread in waiting:
        thread.join(60)
    assert batches.batches == [1, 16, 3]
    assert isinstance(found.pop("bad"), ValueError)
    assert found == {text: text for text in found}
    assert len(found) == 19
    assert "atlas_batch_size_count 3.0\natlas_batch_size_sum 20.0" in metrics.text().decode()
    eventually(lambda: not crew._running)


def test_a_sentence_whose_time_is_over_ends_no_other_of_its_batch(
    batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outlines(requests: list[Any]) -> list[Any]:
        batches.batches.append(len(requests))
        if any(one.text == "endless" for one in requests):
            raise CpuTimeError
        return [one.text for one in requests]

    monkeypatch.setattr(batches, "outlines", outlines)
    tasks = [
        Task(Call("outline", TranslationRequest(MODEL, text), cpu_limit=1.0), Future(), "here", CpuTimer(1.0))
        for text in ("one", "endless", "other")
    ]
    one = ThreadWorker(Crew())
    one._waiting.extend(tasks)
    one._run_waiting()
    assert batches.batches == [3, 1, 1, 1]
    assert [tasks[place].future.result() for place in (0, 2)] == ["one", "other"]
    with pytest.raises(CpuTimeError):
        tasks[1].future.result()
    without = Task(Call("outline", TranslationRequest(MODEL, "one")), Future(), "here")
    one._waiting.extend([tasks[0], without])
    assert len(one._next_tasks()) == 1, "a link's sentence has a limit, and is not with those that have none"


@pytest.mark.parametrize(("limit", "ends"), [(None, False), (3600.0, False), (0.0, True)])
def test_a_worker_ends_what_exceeds_its_processor_time(
    batches: Batches, monkeypatch: pytest.MonkeyPatch, limit: float | None, ends: bool
) -> None:
    monkeypatch.setattr(worker, "_shared", [])
    batches.go_on.set()
    monkeypatch.setattr(batches, "outlines", lambda requests: (may_end(), [one.text for one in requests])[1])
    call = Call("outline", TranslationRequest(MODEL, "one"), cpu_limit=limit)
    (result,) = map(pickle.loads, pickle.loads(worker.run(pickle.dumps([call]))))
    assert isinstance(result.value, CpuTimeError) if ends else result.value == "one"
    assert result.cpu_seconds > 0


def test_a_worker_takes_turns_between_addresses() -> None:
    one = ThreadWorker(Crew())
    for address in ("crowd", "crowd", "crowd", "newcomer", "newcomer"):
        one._waiting.append(Task(Call("evaluate", None), Future(), address))
    assert [one._next_tasks()[0].address for _ in range(5)] == ["crowd", "newcomer", "crowd", "newcomer", "crowd"]
    assert one._next_tasks() == []
    one._thread = SimpleNamespace(submit=lambda *_: None)  # which runs nothing
    visitor = working_for(Client("198.51.100.7", "a window"), CpuTimer(1.0))
    with visitor, interruptible(leaving(lambda: True)), pytest.raises(AbandonedError):
        one.execute("evaluate", None)
    assert one._waiting[0].address == "198.51.100.7"


def test_long_work_of_one_address_leaves_a_worker_to_others_and_goes_on_when_it_may(batches: Batches) -> None:
    crew = Crew()
    first, second = ThreadWorker(crew), ThreadWorker(crew)
    long, again = (Task(Call("evaluate", "x" * 2000), Future(), "crowd") for _ in range(2))
    short = Task(Call("evaluate", "x"), Future(), "newcomer")
    first._waiting.append(long)
    assert first._next_tasks() == [long]
    assert first.or_idle() is second, "who comes for the first is served by the idle one"
    second._waiting.extend([again, short])
    assert second._next_tasks() == [short]
    assert second._next_tasks() == []
    crew.end(first, [long], 2.0)
    assert again.future.exception(60) is not None, "it ran, of no function"


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
    with interruptible(leaving(lambda: time.monotonic() > end)), pytest.raises(AbandonedError):
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
