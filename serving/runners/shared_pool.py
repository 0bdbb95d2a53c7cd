"""One pool of workers for several processes of pages, in a process of its own: `PoolClient.execute` calls it there.

Shared, so that sentences of all visitors form batches, and long work of one address leaves a worker free for everybody
else, whichever process a visitor is with. Whoever may open the socket's folder is trusted: calls are pickled.
"""

import pickle
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector

from serving.compute.slots import AbandonedError, BusyError, client_in_slot, timer_in_slot, working_for
from serving.metrics import batch_sizes, operations_served
from serving.runners.worker import Call, Result, pack_result
from serving.runners.worker_pool import WorkerPool
from viz_core.runtime.hooks import CpuTimer, interruptible, may_end

_STEP = 0.5  # seconds between two checks whether the result is still needed
_PAUSE, _TIMEOUT = 0.1, 10.0  # seconds between two tries to reach the pool, and until it counts as busy
_BACKLOG = 128  # connections that may wait to be accepted


def serve_pool(address: str, count: int, metrics_address: str = "") -> None:
    """Serve a pool of `count` workers at a socket of the file system until SIGTERM, which raises SystemExit."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
    Path(address).unlink(missing_ok=True)  # of a process that was killed
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    pool = WorkerPool(count, batch_sizes(registry).observe)
    try:
        with operations_served(metrics_address, registry, {}), Listener(address, "AF_UNIX", _BACKLOG) as listener:
            while True:
                threading.Thread(target=_answer, args=(listener.accept(), pool), daemon=True).start()
    finally:
        pool.close()


def _answer(connection: Connection, pool: WorkerPool) -> None:
    """Answer the calls of one connection, one after the other, until it is closed."""
    with connection, suppress(EOFError, OSError):
        while True:
            client, call = pickle.loads(connection.recv_bytes())

            def check(method: str = call.method) -> None:
                if connection.poll():  # nothing is sent before the answer: it was closed, and nobody waits
                    raise AbandonedError(method)

            timer = CpuTimer(call.cpu_limit)
            try:
                with interruptible(check), working_for(client, timer):
                    result = Result(pool.execute(call.method, call.subject, *call.args, **call.kwargs))
            except Exception as error:
                result = Result(error, raised=True)
            connection.send_bytes(pack_result(result._replace(cpu_seconds=timer.seconds)))


class PoolClient:
    """Calls the pool at an address as `WorkerPool.execute` does; each thread has a connection of its own."""

    def __init__(self, address: str) -> None:
        self._address, self._of_thread = address, threading.local()

    def execute(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method in the subject's worker and return its result; again if the pool's process ends meanwhile.

        BusyError if the worker died in every try, or the pool cannot be reached.
        """
        timer = timer_in_slot()
        call = Call(method, subject, args, kwargs, None if timer is None else timer.left)
        packed = pickle.dumps((client_in_slot(), call))
        end = time.monotonic() + _TIMEOUT
        while True:
            try:
                result: Result = pickle.loads(self._exchange(packed))
                break
            except (EOFError, OSError):  # its process has ended, and another is started
                if time.monotonic() > end:
                    raise BusyError(method) from None
            time.sleep(_PAUSE)
            may_end()
        if timer is not None:
            timer.add(result.cpu_seconds)
        if result.raised:
            raise result.value
        return result.value

    def close(self) -> None:
        """Do nothing: the pool is for the others too."""

    def _exchange(self, packed: bytes) -> bytes:
        """Send a call and return its answer. A connection that is closed before the answer ends the call."""
        connection = getattr(self._of_thread, "connection", None) or Client(self._address, "AF_UNIX")
        self._of_thread.connection = None
        try:
            connection.send_bytes(packed)
            while not connection.poll(_STEP):
                may_end()
            answer: bytes = connection.recv_bytes()
        except BaseException:
            connection.close()
            raise
        self._of_thread.connection = connection
        return answer
