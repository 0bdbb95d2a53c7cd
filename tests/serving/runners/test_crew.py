"""Workers of a pool: long work of one address leaves a worker free, by hand and in threads."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

from serving.compute.slots import Slots
from serving.compute.turns import Client
from serving.metrics import Metrics
from serving.runners.crew import LONG, Crew, Task
from serving.runners.worker import Call
from serving.runners.worker_pool import Worker

TIMEOUT = 60.0


@dataclass(eq=False)
class Bell:
    """A worker that counts how often it was woken."""

    rung: int = 0

    def wake(self) -> None:
        self.rung += 1


def task(address: str | None, subject: str = "short", function: object = None) -> Task:
    return Task(Call("evaluate", subject, (function or task,)), Future(), address)


def crew_of(count: int) -> tuple[Crew, list[Bell]]:
    crew, bells = Crew(), [Bell() for _ in range(count)]
    crew.members.extend(bells)
    return crew, bells


def test_what_took_long_is_expected_to_take_long_whoever_asks() -> None:
    crew, (one, _) = crew_of(2)
    quick, slow, large = task("a"), task("a", function=crew_of), task("a", "x" * 2000)
    assert [crew.is_long(each) for each in (quick, slow, large)] == [False, False, True]
    crew.end(one, [quick], LONG / 10)
    crew.end(one, [slow], 20 * LONG)
    crew.end(one, [large], LONG / 2)
    assert [crew.is_long(each) for each in (quick, slow, large)] == [False, True, False]
    assert crew.is_long(task("b", function=crew_of))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_long_work_of_an_address_leaves_one_worker_free(count: int) -> None:
    crew, workers = crew_of(count)
    large = "x" * 2000
    for worker in workers[: max(1, count - 1)]:
        assert crew.may_run(worker, task("crowd", large))
        crew.begin(worker, [task("crowd", large)])
    last = workers[-1]
    assert crew.may_run(last, task("crowd", large)) is (count == 1)
    assert crew.may_run(last, task("crowd"))
    assert crew.may_run(last, task("newcomer", large))
    assert crew.may_run(last, task(None, large)), "this machine's own work"
    assert crew.free_for(workers[0], "newcomer") is last
    assert crew.free_for(workers[0], "crowd") is workers[0]
    crew.end(workers[0], [task("crowd", large)], LONG)
    assert all(worker.rung == 1 for worker in workers)
    assert crew.may_run(last, task("crowd", large))


class ThreadWorker(Worker):
    """A worker that calls the subject of a call, in its own thread."""

    def _run(self, tasks: Any) -> None:
        for one in tasks:
            one.future.set_result(one.call.subject())


class Gate:
    """Work that holds its worker until it is let go; it looks like a large input."""

    def __init__(self, size: int, any_begun: threading.Event) -> None:
        self.size, self.any_begun = size, any_begun
        self.begun, self.go = threading.Event(), threading.Event()

    def __repr__(self) -> str:
        return "x" * self.size

    def __call__(self) -> str:
        self.begun.set()
        self.any_begun.set()
        assert self.go.wait(TIMEOUT)
        return "done"


def test_a_newcomer_is_served_while_one_address_computes_all_it_may() -> None:
    crew = Crew()
    first, second = ThreadWorker(crew), ThreadWorker(crew)
    slots = Slots(8, 20, TIMEOUT, Metrics())
    any_begun = threading.Event()
    gates = [Gate(2000, any_begun) for _ in range(3)]
    crowd = [
        slots.submit(
            "crowd", lambda one=one, gate=gate: one.or_idle().execute("evaluate", gate), client=Client("crowd", n)
        )
        for n, (one, gate) in enumerate(zip((first, second, second), gates, strict=True))
    ]
    assert any_begun.wait(TIMEOUT)
    newcomer = Gate(3, any_begun)
    newcomer.go.set()
    for one in (first, second):
        job = slots.submit(
            "newcomer", lambda one=one: one.or_idle().execute("evaluate", newcomer), client=Client("newcomer")
        )
        assert job.wait(TIMEOUT)
        assert job.result() == "done"
    assert sum(gate.begun.is_set() for gate in gates) == 1, "long work of one address runs in one worker of two"
    for gate in gates:
        gate.go.set()
    for job in crowd:
        assert job.wait(TIMEOUT)
        assert job.result() == "done"
    for one in (first, second):
        one.close()
    assert slots.close(TIMEOUT)
