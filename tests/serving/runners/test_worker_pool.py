"""Models in worker processes: the same answers, and none is lost when a process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
import torch

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError, BusyError
from serving.requests.models import ModelRegistry, NoModel, ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners import worker, worker_pool
from serving.runners.crew import Crew, Task
from serving.runners.remote import ModelServer, RemoteRunner
from serving.runners.runner import LocalRunner
from serving.runners.worker import Call
from serving.runners.worker_pool import Worker, WorkerPool
from tests.serving.runners.worker_functions import (
    LabModel,
    cached_runs,
    complain,
    die,
    has_streamlit,
    process,
    refuse_to_cross,
    run_program,
    sleep,
    wait_to_be_ended,
)
from viz_core.lessons.transformer.layers import translation_residuals
from viz_core.pretrained import TextError
from viz_core.runtime.hooks import interruptible, may_end

MODEL = ShippedTranslator("transformer-en-fr")
CALM = TranslationRequest(MODEL, "He is calm.")
LABELS: dict[str, str] = defaultdict(lambda: "a label")
linux = pytest.mark.skipif(not worker.can_fork(), reason="workers are not forked on this system")


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(2)
    made.execute("warm", CALM)
    yield made
    processes = [one.process for one in made.workers]
    made.close()
    for one in processes:
        one.join(60)
        assert not one.is_alive()
    with pytest.raises(BusyError):
        made.execute("outline", CALM)


@pytest.fixture
def runner(pool: WorkerPool) -> RemoteRunner:
    return RemoteRunner(pool.execute, LRUCache(100, 2**24))


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def memory(pid: int, field: str) -> int:
    """Kilobytes of a process: "Rss" with what it shares, "Private_Dirty" of its own."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def test_runs_weights_and_errors_are_those_of_a_local_model(runner: RemoteRunner) -> None:
    here = LocalRunner(ModelRegistry(), LRUCache(100, 2**24))
    for one in (CALM, TranslationRequest(MODEL, "She reads a good book.", 4)):
        expected, found = here.run(one), runner.run(one)
        assert (found.text, found.target_ids) == (expected.text, expected.target_ids)
        for site in expected.trace.sites:
            torch.testing.assert_close(found.trace[site].weights(), expected.trace[site].weights(), rtol=0, atol=1e-6)
        expected_maps, found_maps = here.groups(one, LABELS)[-1], runner.groups(one, LABELS)[-1]
        assert torch.equal(expected_maps.picture(1).thumbnails, found_maps.picture(1).thumbnails)
        residuals = runner.evaluate(one, translation_residuals)
        assert residuals == pytest.approx(here.evaluate(one, translation_residuals), abs=1e-5)
    with pytest.raises(TextError):
        runner.run(TranslationRequest(MODEL, " "))
    with pytest.raises(ValueError, match="nothing"):
        runner.load(ShippedTranslator("nothing"))
    with pytest.raises(RuntimeError, match="WordyError: this and that"):
        runner.evaluate(CALM, complain)
    with pytest.raises(RuntimeError, match="lambda"):
        runner.evaluate(CALM, refuse_to_cross)


def test_a_request_goes_to_one_worker_and_a_lab_model_to_another(pool: WorkerPool) -> None:
    requests = [TranslationRequest(MODEL, f"{number} cats.") for number in range(20)]
    assert {hash(one) % 2 for one in requests} == {0, 1}
    pids = [one.process.pid for one in pool.workers]
    assert len(set(pids)) == 2
    for one in requests:
        assert pool.execute("evaluate", one, process) == pids[hash(one) % 2]
    found = {pool.execute("evaluate_model", LabModel(), process) for _ in range(3)}
    assert len(found) == 1
    assert not found & set(pids)


@pytest.mark.attack("disorder")
def test_no_result_is_lost_when_a_worker_is_killed(pool: WorkerPool, runner: RemoteRunner) -> None:
    requests = [TranslationRequest(MODEL, f"The old dog and {number} cats are in the house.") for number in range(12)]
    translated: dict[TranslationRequest, str] = {}
    lost: list[BaseException] = []
    middle = threading.Event()

    def visitor(number: int) -> None:
        for one in requests[number::4]:
            try:
                translated[one] = runner.run(one).text
            except BaseException as error:
                lost.append(error)
            if len(translated) > 3:
                middle.set()

    before = [one.process.pid for one in pool.workers]
    visitors = [threading.Thread(target=visitor, args=(number,)) for number in range(4)]
    for one in visitors:
        one.start()
    assert middle.wait(300)
    pool.workers[0].process.kill()
    for one in visitors:
        one.join(300)
    assert lost == []
    here = LocalRunner(ModelRegistry(), LRUCache(100, 2**24))
    assert translated == {one: here.run(one).text for one in requests}
    assert pool.workers[0].execute("evaluate_model", MODEL, process) not in before
    assert pool.workers[1].execute("evaluate_model", MODEL, process) == before[1]


@pytest.mark.attack("disorder")
def test_a_call_that_kills_its_worker_is_given_up_and_what_cannot_be_is_refused(pool: WorkerPool) -> None:
    with pytest.raises(BusyError):
        pool.workers[0].execute("evaluate_model", MODEL, die)
    assert pool.workers[0].execute("evaluate_model", MODEL, process) > 0
    with pytest.raises(ValueError, match="got '__init__'"):
        pool.execute("__init__", MODEL)
    with pytest.raises(ValueError, match="got 0"):
        WorkerPool(0)


def leaving(gone: Callable[[], bool]) -> Callable[[], None]:
    """Return the check of a visitor who leaves."""

    def check() -> None:
        if gone():
            raise AbandonedError("test")

    return check


@pytest.mark.attack("disorder")
def test_work_that_nobody_waits_for_ends(pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of its steps, or with its process where it never checks."""
    one, traces = pool.workers[1], tmp_path / "ended"
    before = one.execute("evaluate_model", MODEL, process)

    def start_and_leave(function: Callable[..., None], argument: object) -> None:
        end = time.monotonic() + 0.5
        with interruptible(leaving(lambda: time.monotonic() > end)), pytest.raises(AbandonedError):
            one.execute("evaluate_model", MODEL, function, argument)

    start_and_leave(wait_to_be_ended, str(traces))
    eventually(traces.exists)
    assert one.execute("evaluate_model", MODEL, process) == before
    monkeypatch.setattr(worker_pool, "_GRACE", 0.2)
    start_and_leave(sleep, 1e6)
    assert one.execute("evaluate_model", MODEL, process) != before


def test_every_worker_is_warmed_and_so_is_its_replacement(pool: WorkerPool) -> None:
    for _ in range(2):
        pool.execute("warm", CALM)
    assert all(one._warmed == [CALM] for one in pool.workers)
    pool.workers[0].process.kill()
    assert pool.workers[0].execute("evaluate_model", NoModel(), cached_runs) == 1


@linux
@pytest.mark.attack("memory")
def test_workers_share_one_copy_of_the_weights(pool: WorkerPool) -> None:
    for number in range(4):
        pool.execute("outline", TranslationRequest(MODEL, f"{number} old dogs."))
    for one in pool.workers:
        own, whole = (memory(one.process.pid, field) for field in ("Private_Dirty", "Rss"))
        assert own < whole / 3
    assert pool.workers[0].execute("evaluate_model", NoModel(), run_program) == 7, "it can wait for a program"


@linux
@pytest.mark.attack("disorder")
def test_the_fork_server_may_die_and_its_workers_are_replaced(pool: WorkerPool) -> None:
    before = pool.workers[0].execute("evaluate_model", NoModel(), process)
    os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)  # type: ignore[attr-defined]
    eventually(lambda: not pool.workers[0].process or not pool.workers[0].process.is_alive())
    assert pool.workers[0].execute("evaluate_model", NoModel(), process) != before
    eventually(lambda: not Path(f"/proc/{before}").exists())


def test_a_worker_does_not_run_the_script_of_streamlit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of a pool imports the file of `__main__`, which Streamlit replaces by the script of the visit."""
    for path in ("ui/app/main.py", "hosted.py"):
        script = types.ModuleType("__main__")
        script.__file__ = str(Path(path).resolve())
        monkeypatch.setitem(sys.modules, "__main__", script)
        alone = Worker(Crew())
        assert alone.execute("evaluate_model", NoModel(), has_streamlit) is False
        alone.close()


ABANDON = """
import os
from serving.requests.models import NoModel
from serving.runners.worker_pool import WorkerPool
from tests.serving.runners.worker_functions import process
if __name__ == "__main__":
    print(WorkerPool(1).execute("evaluate_model", NoModel(), process), flush=True)
    os.kill(os.getpid(), 9)
"""


@linux
def test_a_worker_ends_with_the_process_that_started_it() -> None:
    found = subprocess.run([sys.executable, "-c", ABANDON], stdout=subprocess.PIPE, check=False)
    eventually(lambda: not Path(f"/proc/{int(found.stdout)}").exists())


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
        self._shared = self._shared or types.SimpleNamespace(value=0)
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
    one, found = ThreadWorker(Crew()), dict[str, Any]()
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


def test_a_worker_takes_turns_between_addresses() -> None:
    one = ThreadWorker(Crew())
    for address in ("crowd", "crowd", "crowd", "newcomer", "newcomer"):
        one._waiting.append(Task(Call("evaluate", None), Future(), address))
    assert [one._next_tasks()[0].address for _ in range(5)] == ["crowd", "newcomer", "crowd", "newcomer", "crowd"]
    assert one._next_tasks() == []


def test_a_batch_goes_on_as_long_as_one_wants_it(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_STEP", 0.02)
    one, found = ThreadWorker(Crew()), dict[str, Any]()
    gone = {name: threading.Event() for name in ("first", "lost")}
    first = ask(one, "first", found, leaving(gone["first"].is_set))
    assert batches.begun.wait(60)
    lost, wanted = ask(one, "lost", found, leaving(gone["lost"].is_set)), ask(one, "wanted", found)
    eventually(lambda: len(one._waiting) == 2)
    batches.begun.clear()
    gone["first"].set()  # nobody waits for it, so it ends
    first.join(60)
    assert batches.begun.wait(60)
    gone["lost"].set()
    lost.join(60)
    time.sleep(0.3)  # many looks at who still waits
    batches.go_on.set()
    wanted.join(60)
    assert batches.batches == [1, 2]
    assert found["wanted"] == "wanted"
    assert isinstance(found["first"], AbandonedError)
    assert isinstance(found["lost"], AbandonedError)
