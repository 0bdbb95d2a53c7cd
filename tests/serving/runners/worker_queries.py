"""Questions for workers: at the top level of a module that a worker can import too."""

from __future__ import annotations

import os
import time
from pathlib import Path

from viz_core.pretrained import Translation, Translator
from viz_core.runtime.interruption import may_end


def process(_model: Translator) -> int:
    return os.getpid()


def die(_model: Translator) -> None:
    os._exit(1)


def sleep(_model: Translator, seconds: float) -> None:
    """Without a look at whether anybody waits."""
    time.sleep(seconds)


def wait_to_be_ended(_model: Translator, traces: str) -> None:
    """Leave a trace when it is ended between two of its steps."""
    try:
        while True:
            time.sleep(0.01)
            may_end()
    except BaseException:
        Path(traces).touch()
        raise


class WordyError(Exception):
    """One that cannot be made again from its message."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def complain(_model: Translator, _run: Translation) -> None:
    raise WordyError("this", "that")
