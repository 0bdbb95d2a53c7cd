"""Slots: never more at once than there are, shared fairly between addresses."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from serving.compute.slots import (
    LEASE,
    AbandonedError,
    BusyError,
    Job,
    OutOfTimeError,
    OwnBusyError,
    Slots,
    client_in_slot,
    in_slot,
    timer_in_slot,
)
from serving.compute.turns import NOBODY, Client
from viz_core.runtime.hooks import CpuTimeError, may_end

TIMEOUT = 60.0  # a deadlock fails the test, and does not hang it


class Clock:
    """Time that passes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Notes:
    """What an observer was told."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def observe_wait(self, kind: str, seconds: float, new: bool) -> None:
        self.events.append(("waited", kind, seconds))

    def observe_work(self, kind: str, seconds: float, outcome: str) -> None:
        self.events.append(("worked", kind, seconds, outcome))

    def count_refusal(self, kind: str) -> None:
        self.events.append(("refused", kind))


class Latch:
    """Work that has begun when `begun` is set, and goes on when `go` is."""

    def __init__(self, value: object = None) -> None:
        self.value = value
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self) -> object:
        self.begun.set()
        assert self.go.wait(TIMEOUT)
        may_end()
        return self.value


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def build(clock: Clock, notes: Notes) -> Iterator[Callable[..., Slots]]:
    made: list[Slots] = []

    def slots(count: int = 1, queue: int = 10, max_seconds: float = 60.0) -> Slots:
        made.append(Slots(count, queue, max_seconds, notes, clock))
        return made[-1]

    yield slots
    for one in made:
        assert one.close(TIMEOUT)


def occupy(slots: Slots, value: object = None, client: Client = NOBODY) -> tuple[Job, Latch]:
    """Work that holds a slot until it is let go."""
    gate = Latch(value)
    job = slots.submit("gate", gate, client=client)
    assert gate.begun.wait(TIMEOUT)
    return job, gate


def over(job: Job) -> Any:
    assert job.wait(TIMEOUT)
    return job.result()


def test_what_work_returns_or_raises_comes_back(build: Callable[..., Slots], notes: Notes) -> None:
    slots = build(queue=0)  # a free slot serves without one
    assert not in_slot()
    assert over(slots.submit("outer", in_slot)) is True, "what a job asks for in turn it does itself"
    assert not in_slot()
    failing = slots.submit("fail", lambda: {}["nothing"])
    with pytest.raises(KeyError, match="nothing"):
        over(failing)
    assert over(slots.submit("sum", lambda: 3)) == 3  # the slot has survived
    assert [events[-1] for events in notes.events if events[0] == "worked"] == ["done", "KeyError", "done"]


def test_work_ends_once_its_processor_time_is_over(build: Callable[..., Slots]) -> None:
    """Between two steps, as with its time on the clock; what other processes needed for it counts too."""
    slots = build(count=2)

    def work() -> float | None:
        timer = timer_in_slot()
        assert timer is not None
        timer.add(7.0)
        may_end()
        return timer.left

    left = over(slots.submit("within", work, cpu_limit=60.0))
    assert left is not None
    assert left <= 53.0
    assert over(slots.submit("without", work)) is None
    job = slots.submit("beyond", work, cpu_limit=5.0)
    with pytest.raises(CpuTimeError):
        over(job)
    assert job.cpu_seconds >= 7.0
    assert timer_in_slot() is None


def test_never_more_at_once_than_there_are_slots(build: Callable[..., Slots]) -> None:
    slots = build(count=3, queue=40)
    lock, now, most = threading.Lock(), 0, 0
    together = threading.Barrier(3)

    def work() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(TIMEOUT)  # passes only if three are at work
        with lock:
            now -= 1
        together.wait(TIMEOUT)

    jobs = [slots.submit("work", work) for _ in range(12)]
    for job in jobs:
        over(job)
    assert most == 3


def test_first_come_first_served_and_everyone_knows_their_place(
    build: Callable[..., Slots], clock: Clock, notes: Notes
) -> None:
    slots, clock.now = build(), 5.0
    first, gate = occupy(slots)
    order = []
    jobs = [slots.submit("next", lambda number=number: order.append(number)) for number in range(4)]
    assert first.place == 0
    assert [job.place for job in jobs] == [1, 2, 3, 4]
    assert slots.count() == (1, 4)
    clock.now += 2.0
    gate.go.set()
    for job in jobs:
        over(job)
    assert order == [0, 1, 2, 3]
    assert [job.place for job in jobs] == [0, 0, 0, 0]
    assert {("worked", "gate", 2.0, "done"), ("waited", "next", 2.0)} <= set(notes.events)


def test_newcomers_come_first_and_so_do_short_kinds(build: Callable[..., Slots], clock: Clock) -> None:
    slots = build(queue=20)
    over(slots.submit("long", lambda: setattr(clock, "now", clock.now + 9)))
    old, window, *new = Client("crowd", 0), Client("crowd", 1), Client("new", 0), Client("new", 1), Client("other")
    running, gate = occupy(slots, client=old)
    order: list[tuple[str, Client]] = []
    waiting = [("short", old), ("long", window), ("short", window), *(("short", client) for client in new)]
    jobs = [
        slots.submit(kind, lambda kind=kind: order.append((kind, client_in_slot())), client=client)
        for kind, client in waiting
    ]
    clock.now += 2
    assert [job.place for job in jobs] == [6, 5, 4, 1, 3, 2]
    gate.go.set()
    for job in (running, *jobs):
        over(job)
    assert order == [waiting[at] for at in (3, 5, 4, 2, 1, 0)]


def test_closing_lets_the_running_finish_and_sends_the_waiting_away(build: Callable[..., Slots]) -> None:
    slots = build()
    running, gate = occupy(slots, "finished")
    waiting = slots.submit("next", lambda: "never")
    assert slots.close(0) is False
    with pytest.raises(BusyError):
        over(waiting)
    gate.go.set()
    assert slots.close(TIMEOUT) is True
    assert over(running) == "finished"


def test_one_address_never_has_all_slots_nor_all_places(build: Callable[..., Slots], notes: Notes) -> None:
    slots = build(count=4, queue=8)
    gates = [Latch() for _ in range(4)]
    running = [slots.submit("gate", gate, client=Client("crowd", n)) for n, gate in enumerate(gates)]
    for gate in gates[:3]:
        assert gate.begun.wait(TIMEOUT)
    assert slots.count() == (3, 1)
    assert running[3].waits_for_own
    assert running[3].place == 1
    assert over(slots.submit("short", lambda: "at once", client=Client("newcomer"))) == "at once"
    assert not gates[3].begun.is_set()
    waiting = [slots.submit("next", lambda: None, client=Client("crowd", n)) for n in range(3)]
    with pytest.raises(OwnBusyError):
        slots.submit("one-too-many", lambda: None, client=Client("crowd", 9))
    assert ("refused", "one-too-many") in notes.events
    for gate in gates:
        gate.go.set()
    for job in (*running, *waiting):
        over(job)


def test_past_the_queue_the_answer_is_busy_and_whoever_leaves_makes_room(
    build: Callable[..., Slots], clock: Clock, notes: Notes
) -> None:
    slots = build(count=1, queue=2)
    running, gate = occupy(slots)
    done = []
    left = slots.submit("left", lambda: done.append("left"))
    polled = slots.submit("stayed", lambda: done.append("stayed"))
    with pytest.raises(BusyError):
        slots.submit("one-too-many", lambda: None)
    assert ("refused", "one-too-many") in notes.events
    clock.now += LEASE + 0.1
    for job in (running, polled):
        job.wait(0)  # their pages still look
    assert polled.place == 1
    third = slots.submit("third", lambda: done.append("third"))  # takes the place of the one who left
    gate.go.set()
    for job in (running, polled, third):
        over(job)
    assert done == ["stayed", "third"]
    with pytest.raises(AbandonedError):
        over(left)


def test_a_running_job_ends_when_its_visitor_has_left(build: Callable[..., Slots], clock: Clock) -> None:
    slots = build()
    job, gate = occupy(slots, "never seen")
    clock.now += LEASE + 0.1  # nobody touches it
    gate.go.set()
    freed = slots.submit("next", lambda: "served")
    assert over(freed) == "served"
    with pytest.raises(AbandonedError):
        job.result()


def test_the_time_limit_ends_work_between_its_steps(build: Callable[..., Slots], clock: Clock) -> None:
    slots = build(max_seconds=10)
    job, gate = occupy(slots)
    waiting = slots.submit("next", lambda: may_end() or "free again")  # its wait in the queue does not count
    clock.now += 10.5
    job.wait(0)
    waiting.wait(0)
    assert job.seconds == 10.5
    gate.go.set()
    with pytest.raises(OutOfTimeError):
        over(job)
    assert over(waiting) == "free again"


def test_a_page_drawn_anew_finds_its_job_and_its_place(build: Callable[..., Slots]) -> None:
    slots = build()
    _, gate = occupy(slots)
    runs = []
    mine = slots.submit("mine", lambda: runs.append(1), key=("translation", "He is calm."))
    slots.submit("other", lambda: None, key=("translation", "Go."))
    assert slots.submit("mine", lambda: runs.append(2), key=("translation", "He is calm.")) is mine
    assert mine.place == 1
    gate.go.set()
    over(mine)
    assert runs == [1]
    again = slots.submit("mine", lambda: runs.append(3), key=("translation", "He is calm."))
    assert again is not mine  # what is over is not known any more: whoever wants it kept keeps it
    over(again)
    assert runs == [1, 3]
