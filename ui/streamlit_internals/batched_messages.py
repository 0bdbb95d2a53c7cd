"""What a page sends, in bursts.

Each message that reaches a browser by itself makes it lay out all that is there so far, and wakes the server's other
thread: two hundred of them, one by one, cost both several times what they cost together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import ScriptRunnerEvent, get_script_run_ctx

_APART = 0.05  # seconds between two bursts of a run


class Bursts:
    """The messages of one run, kept for a moment.

    Args:
        send: takes one on.
        may_end: ends the run where it is to stop, or another is asked for: as soon as it would have without bursts.
    """

    def __init__(
        self,
        send: Callable[[ForwardMsg], None],
        may_end: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send, self._may_end, self._clock = send, may_end, clock
        self._held: list[ForwardMsg] = []
        self._sent = clock()

    def __call__(self, message: ForwardMsg) -> None:
        self._may_end()
        self._held.append(message)
        if self._clock() - self._sent >= _APART:
            self.send()

    def send(self) -> None:
        """All that is held, in its order."""
        held, self._held = self._held, []
        for message in held:
            self._send(message)
        self._sent = self._clock()


@contextmanager
def in_bursts() -> Iterator[None]:
    """What a run of the page sends in here goes out in bursts; all of it by the end."""
    run = get_script_run_ctx(suppress_warning=True)
    runner = None if run is None else getattr(run._enqueue, "__self__", None)
    if run is None or runner is None:
        yield
        return
    send = run._enqueue
    take = partial(runner.on_event.send, runner, event=ScriptRunnerEvent.ENQUEUE_FORWARD_MSG)
    may_end = runner._maybe_handle_execution_control_request
    run._enqueue = bursts = Bursts(lambda message: take(forward_msg=message), may_end)
    try:
        yield
    finally:
        run._enqueue = send
        bursts.send()


def send_now() -> None:
    """Send what is held: the page is about to wait, or to be looked at."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is not None and isinstance(run._enqueue, Bursts):
        run._enqueue.send()
