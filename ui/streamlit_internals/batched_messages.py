"""Messages of a run, sent to the browser in batches.

Each message that reaches a browser by itself makes it lay out all that is there so far, and wakes the server's other
thread: two hundred of them, one by one, cost both several times what they cost together.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.RootContainer_pb2 import RootContainer
from streamlit.runtime.scriptrunner import ScriptRunnerEvent, get_script_run_ctx

from serving.compute.turns import page_turns
from ui.streamlit_internals.self_test import works

_INTERVAL = 0.05  # seconds between two batches of a run
_MAX_DEFERRED = 0.5  # seconds after which deferred messages go with the next batch
_SCRIPTS = [RootContainer.MAIN, 0]  # the place of invisible components, first on every page


def _is_deferred(message: ForwardMsg) -> bool:
    """Whether a message draws in the sidebar or an invisible component: a browser takes long to draw either."""
    path = list(message.metadata.delta_path)
    return path[:1] == [RootContainer.SIDEBAR] or (path[:2] == _SCRIPTS and path != _SCRIPTS)


class MessageBatch:
    """A buffer for the messages of one run, which holds sidebar and invisible components back until a first picture.

    Args:
        send: sends one message.
        check: ends the run where it is to stop, or another is requested: as soon as it would have without a buffer.
    """

    def __init__(
        self, send: Callable[[ForwardMsg], None], check: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._send, self._check, self._clock = send, check, clock
        self._messages: list[ForwardMsg] = []
        self._deferred: list[ForwardMsg] = []
        self._deferred_due = clock() + _MAX_DEFERRED
        self._due = clock() + _INTERVAL
        self._pause_ends = 0.0

    def __len__(self) -> int:
        return len(self._messages) + len(self._deferred)

    def __call__(self, message: ForwardMsg) -> None:
        self._check()
        (self._deferred if _is_deferred(message) else self._messages).append(message)
        if self._clock() >= self._due:
            self.flush()

    def flush(self, pause: float = 0.0, everything: bool = False) -> None:
        """Send messages in their order; those that follow, and deferred ones, after a pause. In a pause, nothing."""
        if not everything and self._clock() < self._pause_ends:
            return
        messages, self._messages = self._messages, []
        if everything or self._clock() >= self._deferred_due:
            messages, self._deferred = [*messages, *self._deferred], []
        elif pause:
            self._messages, self._deferred = self._deferred, []
        for message in messages:
            self._send(message)
        self._pause_ends = self._clock() + pause
        self._due = self._clock() + max(pause, _INTERVAL)

    def seconds_left(self) -> float:
        """Return how long messages have to wait for the end of the pause."""
        return max(0.0, self._pause_ends - self._clock()) if self._messages else 0.0


@contextmanager
def batched_messages() -> Iterator[None]:
    """Send what a run of the page draws in here in batches; all of it by the end."""
    run = get_script_run_ctx(suppress_warning=True)
    runner = None if run is None or not works("batched_messages") else getattr(run._enqueue, "__self__", None)
    if run is None or runner is None:
        yield
        return
    send = run._enqueue
    take = partial(runner.on_event.send, runner, event=ScriptRunnerEvent.ENQUEUE_FORWARD_MSG)
    check = runner._maybe_handle_execution_control_request
    run._enqueue = batch = MessageBatch(lambda message: take(forward_msg=message), check)
    try:
        yield
        if left := batch.seconds_left():
            with page_turns.pause():
                time.sleep(left)
                batch.flush(everything=True)  # before the page waits for its next turn
            check()  # where a page that was left ends like one that is shown, its end drops the next one's fragments
    finally:
        run._enqueue = send
        batch.flush(everything=True)


def flush_messages(pause: float = 0.0, everything: bool = False) -> None:
    """Send what is in the batch, unless a picture is looked at now for so many seconds (`pause`).

    Args:
        everything: also then, and what is deferred: the page waits long.
    """
    run = get_script_run_ctx(suppress_warning=True)
    batch = getattr(run, "_enqueue", None)
    if isinstance(batch, MessageBatch):
        batch.flush(pause, everything)
