"""Functions for workers, in a module that they can import; what tests wait with; and a server without a process."""

import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from serving.compute.slots import AbandonedError
from serving.requests.models import NoModel
from serving.runners.remote import ModelServer
from viz_core.pretrained import Translation, Translator
from viz_core.runtime.hooks import may_end


def process(*_given: object) -> int:
    return os.getpid()


def reserve_all(_model: None) -> None:
    """Ask for as many bytes as this process may have."""
    np.empty(resource.getrlimit(resource.RLIMIT_AS)[0], np.uint8)


def run_program(_model: None) -> int:
    """Return the exit status of a program that this process started."""
    return subprocess.run(["sh", "-c", "exit 7"], check=False).returncode


def note_and_die(_model: object, attempts: str) -> None:
    with Path(attempts).open("a") as file:
        file.write("x")
    os._exit(1)


def sleep(_model: Translator, seconds: float) -> None:
    """Sleep without checking for a cancellation."""
    time.sleep(seconds)


def wait_to_be_ended(_model: Translator, traces: str) -> None:
    """Create a file when it is interrupted."""
    try:
        while True:
            time.sleep(0.01)
            may_end()
    except BaseException:
        Path(traces).touch()
        raise


class WordyError(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def complain(_model: Translator, _run: Translation) -> None:
    raise WordyError("this", "that")


def refuse_to_cross(_model: Translator, _run: Translation) -> object:
    """Return what cannot be pickled."""
    return lambda: None


def has_streamlit(_model: None) -> bool:
    return "streamlit" in sys.modules


class LabModel(NoModel):
    """No model either, but one that is sent to the workers of the lab."""

    affinity = "lab"


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def leaving(gone: Callable[[], bool]) -> Callable[[], None]:
    """Return the check of a visitor who leaves."""

    def check() -> None:
        if gone():
            raise AbandonedError("test")

    return check


class Wire:
    """Calls the server as a pool's front end calls a replica."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self.received: list[tuple[str, int]] = []  # method, and bytes of its result
        self.sent: list[tuple[str, int]] = []  # method, and bytes of its arguments

    def __call__(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        sent = pickle.dumps((subject, args, kwargs))
        self.sent.append((method, len(sent)))
        subject, args, kwargs = pickle.loads(sent)
        result = pickle.dumps(self._call(method, subject, *args, **kwargs))
        self.received.append((method, len(result)))
        return pickle.loads(result)

    def _call(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        if method != "outline":
            assert method in ModelServer.methods
            return getattr(self._server, method)(subject, *args, **kwargs)
        [found] = self._server.outlines([subject])
        if isinstance(found, Exception):
            raise pickle.loads(pickle.dumps(found))
        return found
