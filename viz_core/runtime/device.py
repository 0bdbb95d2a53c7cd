"""The machine a model runs on: its device, its memory allocator and its cores."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TypeVar

import torch

from viz_core.runtime.refusal import RefusalError


class DeviceError(RefusalError, ValueError):
    """A device that this machine does not have; the message names those it has."""


def best_device() -> torch.device:
    """Return the device models run on: cuda, then mps, then cpu; ATLAS_DEVICE overrides.

    DeviceError if ATLAS_DEVICE names a device this machine does not have.
    """
    name = os.environ.get("ATLAS_DEVICE", "").strip().lower()
    if name:
        return find_device(name, source="ATLAS_DEVICE")
    for name in ("cuda", "mps"):
        if name in available_devices():
            return torch.device(name)
    return torch.device("cpu")


def float64_device(device: torch.device) -> torch.device:
    """Return where to compute in float64 what is on this device: on the CPU instead of mps, which has no float64."""
    return torch.device("cpu") if device.type == "mps" else device


def available_devices() -> tuple[str, ...]:
    """Return the kinds of device of this machine, fastest first."""
    kinds = [("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available()), ("cpu", True)]
    return tuple(name for name, is_available in kinds if is_available)


def describe_device(device: torch.device) -> str:
    """Return a short name: "NVIDIA H200", "Apple GPU" or "CPU, 2 cores"."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return "Apple GPU"
    return f"CPU, {os.cpu_count()} cores"


def fast_precision(device: torch.device) -> torch.dtype:
    """Return bfloat16 if the device multiplies it in hardware, else float32: emulation is many times slower."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return torch.bfloat16 if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else torch.float32
    return torch.float32


def find_device(name: str, source: str = "device") -> torch.device:
    """Return the device of this name. DeviceError if this machine does not have it.

    Args:
        source: the setting that names it, for the error.
    """
    values = {"source": source, "name": name, "have": available_devices()}
    try:
        device = torch.device(name)
    except RuntimeError:
        raise DeviceError("{source}={name!r} is not a device; this machine has {have}", **values) from None
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    if device.type not in available_devices() or (device.index or 0) >= count:
        raise DeviceError("{source}={name!r} is not on this machine; it has {have}", **values)
    return device


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4  # of malloc.h
_LARGE = 2**20  # bytes


def reuse_freed_memory() -> None:
    """Reuse freed blocks instead of returning them to the kernel: 20% more training steps a second on a Linux CPU.

    Every training step frees and allocates the same large blocks; by default each is mapped and zeroed again.
    """
    _set({_MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 256 * 2**20})


def return_freed_memory() -> None:
    """Map each block of 1 MiB or more by itself, so that it returns to the kernel when it is freed.

    By default the C library allocates blocks of up to 32 MiB from one heap once some were freed. Stored tensors then
    fragment it: 10% of the peak memory of a large model's recorded pass.
    """
    _set({_MMAP_THRESHOLD: _LARGE})


def _set(options: dict[int, int]) -> None:
    """Set options of the C library, on Linux alone."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # without mallopt everything works, with more time or memory
        return
    for option, value in options.items():
        mallopt(option, value)


Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return [work(item) for item in items], computed in threads; an error in one is raised.

    torch computes without Python's lock, so threads suffice. All callers share a pool of cores / torch threads; with a
    pool of one, or one item, items are computed here, one after the other.
    """
    tasks = list(items)
    threads = max(1, (os.cpu_count() or 1) // torch.get_num_threads())
    if threads == 1 or len(tasks) == 1:
        return [work(task) for task in tasks]
    # Each item runs in a copy of the caller's context: its interruption and its recorder.
    contexts = [copy_context() for _ in tasks]
    return list(_pool(threads).map(lambda context, task: context.run(work, task), contexts, tasks))


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="parallel")
