"""The parts of the benchmark, where each can run, and a process of its own for each, which Ctrl-C ends."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from benchmarks.report import Row

# A part is a module of this package with `measure(...) -> list[Row]`, and QUICK, arguments for a try-out.
PARTS = (
    "recording",
    "map_queries",
    "long_maps",
    "attention_view",
    "long_inputs",
    "sinusoid_heatmap",
    "rotary",
    "translating",
    "heads_off",
    "circuits",
    "starting",
    "visiting",
    "static_site",
)
SAVED = (*PARTS, "load")  # all that is kept, in the order of the tables; the last runs by itself


def devices(part: str, wanted: str | None = None) -> list[str]:
    """Where a part runs: on the CPU, and on a GPU as well if it can and there is one; or only where it is wanted."""
    import torch

    module = importlib.import_module(f"benchmarks.{part}")
    able = ["cpu", "cuda"] if "device" in inspect.signature(module.measure).parameters else ["cpu"]
    there = [device for device in able if device == "cpu" or torch.cuda.is_available()]
    return [device for device in there if wanted in (None, device)]


def measured(part: str, device: str, quick: bool) -> list[Row]:
    """The rows of a part."""
    module = importlib.import_module(f"benchmarks.{part}")
    where = {} if device == "cpu" else {"device": device}
    return module.measure(**where, **(module.QUICK if quick else {}))


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
