"""Decode a visitor's file in a process of its own, a few at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from serving.compute.slots import BusyError
from viz_core.runtime.interruption import may_end
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.runtime.refusal import RefusalError

Refusal = TypeVar("Refusal", bound=RefusalError)

CPU_SECONDS = 5
MEMORY = 2**30
"""Bytes: 40 megapixels in red, green, blue and opacity take 0.7 GB while they are decoded."""

AT_ONCE = 2
"""Files that one process has decoded at once; each worker process has its own."""

_WAIT = 20.0  # seconds
_STEP = 0.1
_places = threading.BoundedSemaphore(AT_ONCE)


def decode(
    function: Callable[..., Any], content: bytes, allowed: Sequence[float], output: int, too_long: Refusal
) -> bytes:
    """Return what a function of `serving.decoding.child` makes of a file.

    Args:
        allowed: the other arguments of the function.
        output: maximum bytes of the result.
        too_long: raised where a limit is exceeded; refusals of the function are raised as errors of its class.

    Raises:
        RefusalError: if the file is refused; the message is for the visitor.
        BusyError: if too many files are being decoded.
    """
    _take_place()
    try:
        return run_limited(function, content, allowed, Limits(CPU_SECONDS, MEMORY, output))
    except RefusalError as refusal:
        raise type(too_long)(refusal.sentence, **refusal.values) from None
    except LimitError:
        raise too_long from None
    finally:
        _places.release()


def _take_place() -> None:
    end = time.monotonic() + _WAIT
    while not _places.acquire(timeout=_STEP):
        may_end()
        if time.monotonic() > end:
            raise BusyError("decoding")
