"""A process that has imported the libraries and loaded the models that ship, and is copied to make each worker.

Copies share its memory until they write to it, so that eight workers need little more than one, and a worker that
replaces another is there at once. Copying is safe because the process has one thread; nothing is computed in it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from serving.settings import settings

_TIMEOUT = 120.0  # seconds for the imports


def can_copy() -> bool:
    """Return whether workers may be copies here: on Linux without a GPU, whose driver a copy could not use."""
    gpu = any(Path(name).exists() for name in ("/dev/nvidiactl", "/dev/kfd"))
    return hasattr(os, "pidfd_open") and sys.platform == "linux" and (settings().device == "cpu" or not gpu)


class CopiedProcess:
    """A copy of the template, with the methods of `subprocess.Popen` that a pool needs.

    Args:
        pid: of the process.
        handle: its pidfd, which never names another process.
    """

    def __init__(self, pid: int, handle: int) -> None:
        self.pid, self._handle = pid, handle

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._handle)

    def kill(self) -> None:
        """End the process; nothing if it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def poll(self) -> int | None:
        """Return None while it runs, then 0: its exit status is its template's to know."""
        return 0 if select.select([self._handle], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        """Return 0 once it has ended.

        Raises:
            subprocess.TimeoutExpired: if it runs longer than the timeout.
        """
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return 0


class WorkerTemplate:
    """The process that is copied, started when the first worker is, and again if it has ended.

    Args:
        environment: of the process and its copies.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def copy(self, end: int) -> CopiedProcess | None:
        """Return a worker on this end of a pipe; None where there is no template."""
        with self._lock:
            try:
                if self._process is None or self._process.poll() is not None:
                    self._start()
                assert self._control is not None
                socket.send_fds(self._control, [b"1"], [end])
                pid, handles, _, _ = socket.recv_fds(self._control, 16, 1)
                if handles:
                    return CopiedProcess(int(pid), handles[0])
            except OSError:
                pass
            self._end()  # an answer that came later would be taken for another's
        return None

    def close(self) -> None:
        """End the process; its copies go on."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from serving.runners.worker_template import main; main({theirs.fileno()})"],
                pass_fds=[theirs.fileno()],
                env=self._environment,
            )
        ours.settimeout(_TIMEOUT)
        self._control = ours


def main(end: int) -> None:
    """Load what workers share, then make a copy for each end of a pipe that comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, which ends its workers
    from serving.models.model_registry import ModelRegistry
    from serving.runners import worker

    registry = ModelRegistry()
    worker.load_shipped(registry)
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so copy it
    control = socket.socket(fileno=end)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies
    while True:
        message, ends, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            os._exit(0)  # the server has ended
        _copy(control, ends[0], lambda given: worker.run(given, registry))


def _copy(control: socket.socket, end: int, work: Callable[[int], None]) -> None:
    if (pid := os.fork()) == 0:
        try:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or it could not wait for processes of its own
            work(end)
        finally:
            os._exit(1)
    os.close(end)
    handles = []
    with suppress(OSError):  # it has ended already
        handles.append(os.pidfd_open(pid))
    socket.send_fds(control, [str(pid).encode()], handles)
    for handle in handles:
        os.close(handle)
