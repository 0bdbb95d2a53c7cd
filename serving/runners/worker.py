"""What runs in a worker process of `serving.runners.worker_pool`: one task at a time, or one batch of sentences.

On Linux without a GPU, whose driver a fork could not use, workers are forked from a server that has imported this
module and loaded the models that ship: they share its memory until they write to it.
"""

import gc
import os
import pickle
import signal
import sys
import threading
import time
from contextlib import suppress
from ctypes import c_byte
from functools import cache
from io import BytesIO
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError
from serving.environment import usable_memory
from serving.logs import configure_logging
from serving.requests.models import ModelRegistry, ShippedClassifier, ShippedTranslator
from serving.runners.remote import ModelServer
from serving.settings import settings
from viz_core.pretrained import available
from viz_core.runtime.hooks import CpuTimer, interruptible

_BY_BYTES = {torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool}


class _Packer(pickle.Pickler):
    """Pickles tensors as arrays: torch writes a file header for each storage, slow for many small maps."""

    def reducer_override(self, value: Any) -> Any:
        plain = type(value) is Tensor and value.device.type == "cpu" and not value.requires_grad
        if plain and value.dtype in _BY_BYTES:
            return torch.from_numpy, (value.numpy(),)
        return NotImplemented


def pack(value: Any) -> bytes:
    """Return the pickled value, as `pickle.dumps` but faster for tensors. Tensors no longer share memory.

    Exception as `pickle.dumps`.
    """
    packed = BytesIO()
    _Packer(packed, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return packed.getvalue()


GO_ON, CANCEL, EXIT = 0, 1, 2
"""Values of the byte that a worker shares with its pool."""

_MAX_RESULTS = 512
_FOR_RUNS = 2**31  # bytes for inputs and recordings, beside a model
_STEP = 1.0  # seconds between two checks whether this process is still needed
_shared: list[c_byte] = []


class Call(NamedTuple):
    """A call of a method of `ModelServer`, or "outline"."""

    method: str
    subject: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  # never written to
    cpu_limit: float | None = None  # processor seconds


class Result(NamedTuple):
    """The value that a call returned, or the error that it raised."""

    value: Any
    raised: bool = False
    cpu_seconds: float = 0.0


def can_fork() -> bool:
    """Return whether workers may be forked from a process with loaded models."""
    gpu = any(Path(name).exists() for name in ("/dev/nvidiactl", "/dev/kfd"))
    return sys.platform == "linux" and (settings().device == "cpu" or not gpu)


@cache
def registry() -> ModelRegistry:
    """Return the models loaded in this process."""
    return ModelRegistry()


@cache
def server() -> ModelServer:
    """Return what runs the models of this process, with its share of the cache."""
    cache_bytes = settings().cache_mb * 2**20 // max(1, settings().workers)
    return ModelServer(registry(), LRUCache(_MAX_RESULTS, cache_bytes))


def load_shipped(models: ModelRegistry) -> None:
    """Load the models that ship, to be shared by forks; one that cannot be loaded says so when it is asked for."""
    torch.set_num_threads(1)
    for card in available(task="translation"):
        with suppress(ValueError):
            translator = models(ShippedTranslator(card.name))
            with suppress(Exception):  # a fault is told by the worker that is asked, not by the template of all
                translator.translate_texts(["Hello."])  # packs the weights that steps read
    for card in available(task="classification"):
        with suppress(ValueError):
            models(ShippedClassifier(card.name))
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so copy it


def start(shared: c_byte) -> None:
    """Prepare a worker process.

    Args:
        shared: GO_ON, CANCEL or EXIT, as the pool says.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, which ends its workers
    torch.set_num_threads(1)
    if settings().hosted:
        configure_logging()
    if can_fork() and not torch.accelerator.is_available():  # whose drivers reserve far more than they use
        limit_memory(3 * (settings().model_memory or usable_memory()) + _FOR_RUNS)
    _shared[:] = [shared]
    threading.Thread(target=_exit_with_pool, daemon=True).start()


def limit_memory(growth: int) -> None:
    """Have the system give this process so many more bytes at most: a model, the next with its file, and runs.

    A lower limit that the system has stays.
    """
    import resource  # not on Windows

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + growth
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if all(limit == resource.RLIM_INFINITY or most < limit for limit in (soft, hard)):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def run(packed: bytes) -> bytes:
    """Return the packed results of packed calls: one call, or several of "outline" that run in one batch."""
    calls: list[Call] = pickle.loads(packed)
    limits = [one.cpu_limit for one in calls]
    timer = CpuTimer(None if None in limits else sum(filter(None, limits)), time.process_time)

    def check() -> None:
        if _shared and _shared[0].value != GO_ON:
            raise AbandonedError("worker")
        timer.check()

    try:
        with interruptible(check):
            results = [Result(one, isinstance(one, Exception)) for one in _values(server(), calls)]
    except BaseException as error:  # a Rust library's panic is not an Exception, and the caller waits for a result
        results = [Result(error, raised=True)] * len(calls)
    share = timer.seconds / len(calls)
    return pickle.dumps([pack_result(one._replace(cpu_seconds=share)) for one in results])


def _values(models: ModelServer, calls: list[Call]) -> list[Any]:
    method, subject, args, kwargs, _ = calls[0]
    if method == "outline":
        return models.outlines([one.subject for one in calls])
    if method not in ModelServer.methods:
        raise ValueError(f"method: expected one of {', '.join(ModelServer.methods)}, got {method!r}")
    return [getattr(models, method)(subject, *args, **kwargs)]


def pack_result(result: Result) -> bytes:
    """Return a pickled result; an error that cannot be pickled is replaced by its text."""
    try:
        packed = pack(result)
        if result.raised:
            pickle.loads(packed)  # errors with their own constructors may fail here
        return packed
    except Exception as error:
        shown = result.value if result.raised else error
        return pickle.dumps(Result(RuntimeError(f"{type(shown).__name__}: {shown}"), True, result.cpu_seconds))


def _exit_with_pool() -> None:
    """End this process, also in the middle of a task, when the process of the pool has ended or wants it to."""
    parent = parent_process()
    while parent is not None and parent.is_alive() and _shared[0].value != EXIT:
        parent.join(_STEP)
    os._exit(0)
