"""Models in worker processes: the same answers, and none is lost when a process dies."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError, BusyError
from serving.models.model_registry import ModelRegistry
from serving.models.model_spec import ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners import worker_pool
from serving.runners.local_runner import LocalRunner
from serving.runners.model_server import ModelServer
from serving.runners.remote_runner import RemoteRunner
from serving.runners.worker import CANCEL, Task, TaskExecutor, TaskResult
from serving.runners.worker_pool import WorkerPool
from tests.serving.runners.worker_functions import complain, die, process, sleep, wait_to_be_ended
from viz_core.lessons.transformer.layers import translation_residuals
from viz_core.pretrained import TextError
from viz_core.runtime.interruption import interruptible

MODEL = ShippedTranslator("transformer-en-fr")
CALM = TranslationRequest(MODEL, "He is calm.")
LABELS: dict[str, str] = defaultdict(lambda: "a label")


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(2)
    yield made
    made.close()
    assert all(worker.process.poll() is not None for worker in made.workers)


@pytest.fixture
def runner(pool: WorkerPool) -> RemoteRunner:
    return RemoteRunner(pool.execute, LRUCache(100, 2**24))


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_answers_and_weights_are_those_of_a_model_here(runner: RemoteRunner) -> None:
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


def test_the_same_is_asked_of_the_same_worker_and_both_are_used(pool: WorkerPool) -> None:
    requests = [TranslationRequest(MODEL, f"{number} cats.") for number in range(20)]
    places = [hash(one) % 2 for one in requests]
    assert set(places) == {0, 1}
    for one in requests:
        pool.execute("outline", one)
    for worker in pool.workers:
        assert worker.execute("evaluate_model", MODEL, process) == worker.process.pid


def test_what_is_wrong_is_told_in_a_sentence(runner: RemoteRunner) -> None:
    with pytest.raises(TextError, match="There is nothing to translate yet"):
        runner.run(TranslationRequest(MODEL, " "))
    with pytest.raises(ValueError, match="nothing"):
        runner.load(ShippedTranslator("nothing"))
    with pytest.raises(RuntimeError, match="WordyError: this and that"):
        runner.evaluate(CALM, complain)


@pytest.mark.attack("disorder")
def test_a_worker_dies_in_the_middle_and_the_answer_comes(pool: WorkerPool, runner: RemoteRunner) -> None:
    """Killed from outside while it translates; its visitors get what they asked for, from the one in its place."""
    requests = [TranslationRequest(MODEL, f"The old dog and {number} cats are in the house.") for number in range(12)]
    answered: dict[TranslationRequest, str] = {}
    lost: list[BaseException] = []
    middle = threading.Event()

    def visitor(number: int) -> None:
        for one in requests[number::4]:
            try:
                answered[one] = runner.run(one).text
            except BaseException as error:
                lost.append(error)
            if len(answered) > 3:
                middle.set()

    before = [worker.process.pid for worker in pool.workers]
    visitors = [threading.Thread(target=visitor, args=(number,)) for number in range(4)]
    for one in visitors:
        one.start()
    assert middle.wait(300)
    pool.workers[0].process.kill()
    for one in visitors:
        one.join(300)
    assert lost == []
    here = LocalRunner(ModelRegistry(), LRUCache(100, 2**24))
    assert answered == {one: here.run(one).text for one in requests}
    assert pool.workers[0].execute("evaluate_model", MODEL, process) not in before
    assert pool.workers[1].execute("evaluate_model", MODEL, process) == before[1]


@pytest.mark.attack("disorder")
def test_a_question_that_always_kills_is_given_up(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_TRIES", 1)
    with pytest.raises(BusyError):
        pool.workers[0].execute("evaluate_model", MODEL, die)
    assert pool.workers[0].execute("evaluate_model", MODEL, process) > 0


def ended_after(seconds: float) -> Callable[[], None]:
    end = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > end:
            raise AbandonedError("test")

    return check


@pytest.mark.attack("disorder")
def test_work_that_nobody_waits_for_ends_between_its_steps(pool: WorkerPool, tmp_path: Path) -> None:
    worker, traces = pool.workers[1], tmp_path / "ended"
    before = worker.execute("evaluate_model", MODEL, process)
    with interruptible(ended_after(0.5)), pytest.raises(AbandonedError):
        worker.execute("evaluate_model", MODEL, wait_to_be_ended, str(traces))
    eventually(traces.exists)
    assert worker.execute("evaluate_model", MODEL, process) == before


@pytest.mark.attack("disorder")
def test_work_past_its_time_is_really_ended(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It never looks whether anybody waits, so its process goes."""
    monkeypatch.setattr(worker_pool, "_GRACE", 0.2)
    worker = pool.workers[1]
    before = worker.process
    with interruptible(ended_after(0.5)), pytest.raises(AbandonedError):
        worker.execute("evaluate_model", MODEL, sleep, 1e6)
    eventually(lambda: before.poll() is not None)
    assert worker.execute("evaluate_model", MODEL, process) != before.pid


def test_every_worker_is_warmed_and_so_is_the_next_in_its_place(pool: WorkerPool, runner: RemoteRunner) -> None:
    runner.warm(CALM)
    assert all(worker._warmed.count(CALM) == 1 for worker in pool.workers)
    runner.warm(CALM)
    assert all(worker._warmed.count(CALM) == 1 for worker in pool.workers)


def test_a_worker_ends_with_whoever_started_it() -> None:
    alone = WorkerPool(1)
    process_of_it = alone.workers[0].process
    alone.execute("evaluate_model", MODEL, process)
    alone.workers[0]._closed = True  # no other takes its place
    assert alone.workers[0]._connection is not None
    alone.workers[0]._connection.send_bytes(b"what no question is")
    assert process_of_it.wait(60) is not None


def test_there_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="expected at least 1 worker, got 0"):
        WorkerPool(0)


class Slow(ModelServer):
    """Notes which sentences come together, and takes its time with the first ones."""

    def __init__(self) -> None:
        super().__init__(lambda _model: None, LRUCache(1, 1))
        self.batches: list[int] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def outlines(self, requests: list[Any]) -> list[Any]:
        self.batches.append(len(requests))
        self.begun.set()
        assert self.go_on.wait(60)
        return [ValueError(one.text) if one.text == "bad" else one.text for one in requests]


def test_sentences_that_wait_are_translated_together() -> None:
    server, answers = Slow(), dict[int, TaskResult]()
    done = threading.Event()

    def send(answer: TaskResult) -> None:
        answers[answer.number] = answer
        if len(answers) == 20:
            done.set()

    executor = TaskExecutor(server, send)
    texts = ["first", *("bad" if number == 7 else f"sentence {number}" for number in range(19))]
    executor.submit(Task(0, "outline", TranslationRequest(MODEL, texts[0])))
    assert server.begun.wait(60)
    for number, text in enumerate(texts[1:], 1):
        executor.submit(Task(number, "outline", TranslationRequest(MODEL, text)))
    server.go_on.set()
    assert done.wait(60)
    assert server.batches == [1, 16, 3]
    assert [answers[n].value if not answers[n].raised else str(answers[n].value) for n in range(20)] == texts
    assert [n for n in range(20) if answers[n].raised] == [8]


def test_a_batch_goes_on_as_long_as_one_wants_it() -> None:
    class Interruptible(Slow):
        def outlines(self, requests: list[Any]) -> list[Any]:
            from viz_core.runtime.interruption import may_end

            self.batches.append(len(requests))
            self.begun.set()
            while not self.go_on.is_set():
                may_end()
                time.sleep(0.01)
            return [one.text for one in requests]

    server, answers = Interruptible(), dict[int, TaskResult]()
    executor = TaskExecutor(server, lambda answer: answers.update({answer.number: answer}))
    executor.submit(Task(0, "outline", TranslationRequest(MODEL, "one")))
    assert server.begun.wait(60)
    executor.submit(Task(0, CANCEL))
    eventually(lambda: 0 in answers)
    assert isinstance(answers[0].value, AbandonedError)
    executor.submit(Task(0, CANCEL))  # it is over
    server.begun.clear()
    executor.submit(Task(1, "outline", TranslationRequest(MODEL, "two")))
    assert server.begun.wait(60)
    server.go_on.set()
    eventually(lambda: 1 in answers)
    assert answers[1].value == "two"


@pytest.mark.attack("disorder")
def test_an_unknown_question_is_refused() -> None:
    answers: list[TaskResult] = []
    TaskExecutor(Slow(), answers.append).submit(Task(3, "__init__", MODEL))
    eventually(lambda: bool(answers))
    assert isinstance(answers[0].value, ValueError)
    assert ", rows, got '__init__'" in str(answers[0].value)
