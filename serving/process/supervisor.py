"""The processes of a public server: forks of one that has imported the libraries, each started again when it ends.

The parent has one thread, so that it can be forked at any time: it waits for signals, and does nothing else.
"""

import ctypes
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from typing import Any

from serving.logs import log
from serving.settings import Settings

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_SIGNALS = _STOP | {signal.SIGCHLD}
_PAUSE, _EARLY = 1.0, 3.0  # seconds between two starts of the same process, and until which an end is a failed start
_OPENING, _STEP = 60.0, 0.1  # seconds in which all pages should accept connections, and between two checks of that
_GRACE = 10.0  # seconds beyond those in which running work is finished
_PR_SET_PDEATHSIG = 1  # of Linux' prctl(2)
_DIVIDED = (
    "slots cache_mb max_visitors max_windows max_address_messages controls_mb uploads_mb address_uploads_mb"
).split()
"""Limits of the whole server. Each process has the whole queue: the visitors of others come to it when those die."""

_context = get_context("fork")


def divided(allowed: Settings, count: int) -> dict[str, str]:
    """Return the variables of each of `count` processes of pages, whose limits add up to those of the server."""
    return {f"ATLAS_{name.upper()}": str(-(-getattr(allowed, name) // count)) for name in _DIVIDED}


def reserve_ports(count: int, until: ExitStack) -> list[int]:
    """Return ports of this machine that no connection takes while their processes are being replaced."""
    ports = []
    for _ in range(count):
        reserved = until.enter_context(socket.socket())
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # bound, but others may listen
        reserved.bind(("127.0.0.1", 0))
        ports.append(reserved.getsockname()[1])
    return ports


def listening(ports: Sequence[int]) -> bool:
    """Return whether connections to all these ports of this machine are accepted."""
    try:
        for port in ports:
            socket.create_connection(("127.0.0.1", port), _STEP).close()
    except OSError:
        return False
    return True


class _Child:
    """A process that is started again when it has ended."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name, self._work = name, work
        self.start()

    def start(self) -> None:
        self._started = time.monotonic()
        self.process: Any = _context.Process(target=_run, args=(self._work,), name=self.name)
        self.process.start()

    @property
    def age(self) -> float:
        return time.monotonic() - self._started

    def send(self, number: int) -> None:
        if self.process.is_alive():  # which also collects it if it is not
            os.kill(self.process.pid, number)


def supervise(
    front: Callable[[], object],
    pages: Sequence[Callable[[], object]],
    others: Mapping[str, Callable[[], object]],
    stop_seconds: float,
    ports: Sequence[int] = (),
) -> int:
    """Run the processes until SIGTERM or SIGINT, and return its number. A second signal stops at once.

    SystemExit if the front cannot be started.

    Args:
        front: takes the visitors' connections; where its first process ends at once, the server cannot be started.
        pages: processes of pages; they finish their work within `stop_seconds` of a signal.
        others: processes that pages need, by name; they end after the pages.
        ports: of the pages. The front starts once all accept connections, or after a minute: earlier visitors would all
            come to the first process, and stay there.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    helpers = [_Child(name, work) for name, work in others.items()]
    served = [_Child(f"pages-{number}", work) for number, work in enumerate(pages)]
    first: Any = None
    begun, number = time.monotonic(), 0
    try:
        while number not in _STOP:
            if first is None and (listening(ports) or time.monotonic() - begun > _OPENING):
                helpers.append(_Child("front", front))
                first = helpers[-1].process
            number = _next_signal(_STEP if first is None else _PAUSE)
            for child in (*served, *helpers):
                if child.process.is_alive() or child.age < _PAUSE:
                    continue
                if child.process is first and child.age < _EARLY:
                    raise SystemExit("The front could not be started.")
                log.warning("a process has ended and is started again", name=child.name, code=child.process.exitcode)
                child.start()
        end = time.monotonic() + 2 * stop_seconds + _GRACE
        while number:
            for child in served:
                child.send(number)
            last = number
            number = _until_ended(served, end)
    finally:
        for child in (*served, *helpers):
            child.send(signal.SIGKILL if child in served else signal.SIGTERM)
        for child in helpers:
            child.process.join(_GRACE)
            child.send(signal.SIGKILL)
    return last


def _until_ended(children: Sequence[_Child], end: float) -> int:
    """Wait until all have ended, or until `end`; return 0, or the signal to stop that comes before."""
    while any(child.process.is_alive() for child in children) and time.monotonic() < end:
        if (number := _next_signal(_PAUSE)) in _STOP:
            return number
    return 0


def _next_signal(seconds: float) -> int:
    """Wait for a signal; return its number, or 0 where none comes in time."""
    found = signal.sigtimedwait(_SIGNALS, seconds)
    return 0 if found is None else found.si_signo


def _run(work: Callable[[], object]) -> None:
    """Work in a process of its own, which Ctrl-C reaches through its parent alone, and which ends with its parent."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.setpgid(0, 0)
    if (prctl := getattr(ctypes.CDLL(None), "prctl", None)) is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    work()
