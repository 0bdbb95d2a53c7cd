"""What the workers of a pool do at the moment: long work of one address leaves one of them free for everybody else.

A call cannot be taken off a worker, so who comes to a worker that computes for a minute would wait for a minute. How
long a call takes is known from earlier ones of its kind: the same function, and an input of about the same size.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from serving.compute.turns import Usual
from serving.runners.worker import Call
from viz_core.runtime.hooks import CpuTimer

LONG = 1.0  # seconds, from which a call is long
_LONG_INPUT = 9  # bits of the size of an input whose kind was never met, from which its call counts as long


class Task(NamedTuple):
    """A call and its result; a cancelled future says that nobody waits for it."""

    call: Call
    future: Future[Any]
    address: Hashable  # of whoever waits
    timer: CpuTimer | None = None  # that counts what the call needs

    @property
    def kind(self) -> tuple[str, str, int]:
        """What its time depends on: the method, the function that it evaluates, and the size of the input in bits."""
        function = getattr(next(iter(self.call.args), None), "__qualname__", "")
        return self.call.method, function, len(repr(self.call.subject)).bit_length()


class Member(Protocol):
    """A worker of a crew."""

    def wake(self) -> None:
        """Look again for a call that may run."""


class Crew:
    """Workers that take the same calls, and what each of them runs.

    Args:
        observe_batch: called with the number of sentences in each batch.
    """

    def __init__(self, observe_batch: Callable[[int], object] = lambda _size: None) -> None:
        self.observe_batch = observe_batch
        self.members: list[Member] = []
        self._running: dict[Member, Sequence[Task]] = {}
        self._usual = Usual()
        self.lock = threading.Lock()

    def is_long(self, task: Task) -> bool:
        """Whether a call is expected to take `LONG`."""
        usual = self._usual.of(task.kind)
        return task.kind[2] > _LONG_INPUT if usual is None else usual >= LONG

    def may_run(self, member: Member, task: Task) -> bool:
        """Whether a worker may begin a call: long ones of its address run in all but one of the others at most."""
        if task.address is None or not self.is_long(task):
            return True
        others = [tasks for other, tasks in self._running.items() if other is not member]
        busy = sum(any(one.address == task.address and self.is_long(one) for one in tasks) for tasks in others)
        return busy < max(1, len(self.members) - 1)

    def free_for(self, preferred: Member, address: Hashable) -> Member:
        """Return the preferred worker, or an idle one while that computes something long for somebody else."""
        with self.lock:
            held = any(one.address != address and self.is_long(one) for one in self._running.get(preferred, ()))
            idle = (other for other in self.members if other not in self._running)
            return next(idle, preferred) if held else preferred

    def begin(self, member: Member, tasks: Sequence[Task]) -> None:
        """Note that a worker runs these calls; the caller holds `lock` since it asked whether they may run."""
        self._running[member] = tasks

    def end(self, member: Member, tasks: Sequence[Task], seconds: float) -> None:
        """Note that they are over, and wake all workers, whose calls may have waited for that."""
        with self.lock:
            self._running.pop(member, None)
            for kind in {one.kind for one in tasks}:
                self._usual.add(kind, seconds)
        for other in self.members:
            other.wake()
