"""Time and memory: alternating samples of calls, and what a process holds or a call needs at its peak."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import torch

Call = Callable[[], object]
Stopwatch = Callable[[Call], float]


def in_turns(
    calls: Mapping[str, Call],
    watch: Stopwatch,
    *,
    samples: int = 9,
    fewest: int = 1,
    max_seconds: float = 30.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, tuple[float, ...]]:
    """Seconds of every call: once to warm up, then round after round, each call once a round.

    At most `samples` rounds; after `fewest` of them, none begins once `max_seconds` have passed.

    Raises:
        ValueError: if samples or fewest is below 1.
    """
    if samples < 1 or fewest < 1:
        raise ValueError(f"samples, fewest: expected at least 1, got {samples} and {fewest}")
    begun = clock()
    for call in calls.values():
        watch(call)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for taken in range(samples):
        if taken >= min(fewest, samples) and clock() - begun > max_seconds:
            break
        for name, call in calls.items():
            times[name].append(watch(call))
    return {name: tuple(values) for name, values in times.items()}


def stopwatch(device: str) -> Stopwatch:
    """What times a call: the clock on the CPU, events on the device where it is a GPU."""
    return _device_seconds if device == "cuda" else _clock_seconds


def milliseconds(times: Mapping[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(1e3 * seconds for seconds in values) for name, values in times.items()}


def _clock_seconds(call: Call) -> float:
    begun = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - begun
    del result  # giving gigabytes back is not part of the call
    return seconds


def _device_seconds(call: Call) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    result = call()
    end.record()
    torch.cuda.synchronize()
    del result
    return start.elapsed_time(end) / 1e3


MB = 1e6
_STATUS, _MARK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def available(device: str = "cpu") -> float | None:
    """Bytes that could be taken now."""
    if device == "cuda":
        return float(torch.cuda.mem_get_info()[0])
    return _kilobytes(Path("/proc/meminfo"), "MemAvailable")


def fits(needed: float, device: str = "cpu") -> bool:
    """Return whether these bytes leave 20% of the memory free; True where the memory is unknown."""
    there = available(device)
    return there is None or needed <= 0.8 * there


def resident(pid: int) -> float:
    """Bytes of main memory that a process holds."""
    answer = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return 1024.0 * int(answer.stdout)


def _own_share(process: psutil.Process) -> int:
    info = process.memory_full_info()
    return int(getattr(info, "pss", info.rss))


class Tree:
    """A server and its workers.

    Raises:
        psutil.NoSuchProcess: where there is no such process.
    """

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def _all(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def memory(self) -> float:
        """Bytes of main memory that they hold; what several of them share counts once, but on systems without PSS."""
        return float(sum(_own_share(process) for process in self._all()))

    def count(self) -> int:
        """Processes that there are."""
        return len(self._all())

    def cpu_seconds(self) -> float:
        """Seconds of processor time that those alive have used."""
        times = [process.cpu_times() for process in self._all()]
        return float(sum(time.user + time.system for time in times))


class Peak:
    """The most bytes taken since `start`, beyond what was held then; for a process that does nothing else."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.before = 0.0

    def start(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self.before = float(torch.cuda.memory_allocated())
            return
        _return_free_memory()
        if _MARK.exists():
            _MARK.write_text("5")  # the high-water mark falls to what is held now
        self.before = _kilobytes(_STATUS, "VmRSS") or 0.0

    def stop(self) -> float | None:
        """None where the system does not tell."""
        if self.device == "cuda":
            torch.cuda.synchronize()
            return torch.cuda.max_memory_allocated() - self.before
        most = _kilobytes(_STATUS, "VmHWM")
        return None if most is None else most - self.before


def _return_free_memory() -> None:
    """Memory freed by what came before must not serve what is measured."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _kilobytes(path: Path, name: str) -> float | None:
    if not path.is_file():
        return None
    line = next((line for line in path.read_text().splitlines() if line.startswith(f"{name}:")), None)
    return None if line is None else 1024.0 * int(line.split()[1])
