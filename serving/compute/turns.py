"""Whose turn it is: addresses share the seconds of computation, and windows those of their address."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

Work = TypeVar("Work")

_RECENT = 0.25  # what the newest work of a kind adds to the mean time of its kind
_MAX_KINDS = 4096
_HALF_LIFE = 60.0  # seconds after which half of what somebody was computed for is forgotten
_LEAST = 0.01  # seconds that a job counts for at least


class Client(NamedTuple):
    """Who waits: an address, and one of its windows."""

    address: Hashable = None
    window: Hashable = None


NOBODY = Client()


class Usual:
    """Mean seconds of work by kind, the newest counting most; of so many kinds those that came last."""

    def __init__(self) -> None:
        self._seconds: dict[Hashable, float] = {}

    def of(self, kind: Hashable) -> float | None:
        """Return the mean of a kind; None where it was never met."""
        return self._seconds.get(kind)

    def add(self, kind: Hashable, seconds: float) -> None:
        """Count what one piece of work took."""
        usual = self._seconds.pop(kind, seconds)
        self._seconds[kind] = usual + _RECENT * (seconds - usual)
        if len(self._seconds) > _MAX_KINDS:
            del self._seconds[next(iter(self._seconds))]


class Spent:
    """Seconds of computation for each address and window, half of them forgotten every minute."""

    def __init__(self) -> None:
        self._seconds: dict[Hashable, tuple[float, float]] = {}  # and when that was so

    def of(self, who: Hashable, now: float) -> float:
        """Return the seconds of an address or a client."""
        seconds, then = self._seconds.get(who, (0.0, now))
        return seconds * 0.5 ** ((now - then) / _HALF_LIFE)

    def add(self, client: Client, seconds: float, now: float) -> None:
        """Count seconds for a client and its address, and forget whoever has hardly any left."""
        for who in (client.address, client):
            self._seconds[who] = self.of(who, now) + max(_LEAST, seconds), now
        for other in [other for other in self._seconds if self.of(other, now) < _LEAST / 2]:
            del self._seconds[other]


def turns(
    waiting: Iterable[tuple[Work, Client, float]],
    running: Iterable[tuple[Client, float]],
    spent: Callable[[Hashable], float],
) -> Iterator[Work]:
    """Order work by turns: of the address with the fewest seconds, its window with the fewest, and short before long.

    Each turn adds its own seconds, so that many windows of one address alternate with one of another. Among equals the
    first that came is first.

    Args:
        waiting: work in the order it came, whose it is, and the seconds it is expected to take.
        running: clients of running work, and its seconds so far.
        spent: the seconds of an address or a client until now.
    """
    left = [*waiting]
    totals = Counter[Hashable]({who: spent(who) for _, client, _ in left for who in (client.address, client)})
    for client, seconds in running:
        totals.update(dict.fromkeys((client.address, client), max(_LEAST, seconds)))
    while left:
        chosen = min(left, key=lambda each: (totals[each[1].address], totals[each[1]], each[2]))
        left.remove(chosen)
        work, client, seconds = chosen
        totals.update(dict.fromkeys((client.address, client), max(_LEAST, seconds)))
        yield work


class AddressTurn:
    """The turn of one address: first pages and others alternate where both wait, each in the order they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: dict[bool, deque[threading.Event]] = {True: deque(), False: deque()}  # by: is it a first page?
        self._next = True

    def acquire(self, first: bool) -> None:
        """Wait for the turn."""
        mine = threading.Event()
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            self._waiting[first].append(mine)
        mine.wait()

    def release(self) -> None:
        """Pass the turn on."""
        with self._lock:
            kind = self._next if self._waiting[self._next] else not self._next
            self._next = not kind
            if self._waiting[kind]:
                self._waiting[kind].popleft().set()
            else:
                self._taken, self._next = False, True


class PageTurns:
    """One page of each address runs at a time.

    Pages are Python, and one interpreter runs one thread at a time: twelve pages of one address at once would leave a
    newcomer a thirteenth of it, and finish no sooner than one after the other. A first page need not wait for all that
    a class has typed, and every second turn is for those whose page is there: nobody holds these up by loading again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakValueDictionary[Hashable, AddressTurn] = WeakValueDictionary()
        self._held: ContextVar[tuple[AddressTurn, bool] | None] = ContextVar("turn", default=None)

    @contextmanager
    def turn(self, address: Hashable, first: bool = False) -> Iterator[None]:
        """Run this code once no other page of the address runs; a part of a page that runs has its turn.

        Args:
            first: whether its visitor has no page yet.
        """
        if self._held.get() is not None:
            yield
            return
        with self._lock:
            own = self._of.get(address)
            if own is None:
                self._of[address] = own = AddressTurn()
        own.acquire(first)
        token = self._held.set((own, first))
        try:
            yield
        finally:
            self._held.reset(token)
            own.release()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let the next page of this address run while this one waits for something else."""
        held = self._held.get()
        if held is None:
            yield
            return
        own, first = held
        token = self._held.set(None)
        own.release()
        try:
            yield
        finally:
            own.acquire(first)
            self._held.reset(token)


page_turns = PageTurns()
