"""A process of its own for each part: Ctrl-C ends it with its servers and browsers, and nothing is left behind."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any


def in_own_process(call: Callable[[], Any]) -> Any:
    """What a call comes to in a fresh interpreter, in a session of its own: Ctrl-C reaches only us.

    Raises:
        RuntimeError: if the call fails; the message says how.
        KeyboardInterrupt: after all that the call had started was ended.
    """
    context = multiprocessing.get_context("spawn")
    answers, sender = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(call, sender))
    child.start()
    sender.close()
    try:
        value, failure = _receive(answers)
        child.join(timeout=30)
    except EOFError:
        failure = "it ended without an answer"
    finally:
        _end(child)
    if failure:
        raise RuntimeError(failure)
    return value


def _receive(answers: Connection) -> Any:
    return answers.recv()


def _work(call: Callable[[], Any], answers: Connection) -> None:
    os.setsid()
    try:
        answers.send((call(), None))
    except Exception as error:
        answers.send((None, str(error) or type(error).__name__))


def _end(child: BaseProcess) -> None:
    """End the process and all of its group; a browser ends itself when what drives it is gone."""
    if child.pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.join()
