"""Time and memory: alternating samples of calls, and what a process holds or a call needs at its peak."""

import ctypes
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

MB = 1e6
_STATUS, _MARK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def in_turns(
    calls: Mapping[str, Callable[[], object]], *, samples: int = 9, fewest: int = 1, max_seconds: float = 30.0
) -> dict[str, tuple[float, ...]]:
    """Seconds of every call: once to warm up, then round after round, each call once a round.

    At most `samples` rounds; after `fewest` of them, none begins once `max_seconds` have passed.
    """
    begun = time.perf_counter()
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for taken in range(samples):
        if taken >= min(fewest, samples) and time.perf_counter() - begun > max_seconds:
            break
        for name, call in calls.items():
            started = time.perf_counter()
            result = call()
            times[name].append(time.perf_counter() - started)
            del result  # giving gigabytes back is not part of the call
    return {name: tuple(values) for name, values in times.items()}


def milliseconds(times: Mapping[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
    """Return seconds as milliseconds."""
    return {name: tuple(1e3 * seconds for seconds in values) for name, values in times.items()}


def fits(needed: float) -> bool:
    """Return whether these bytes leave 20% of the memory free."""
    return needed <= 0.8 * psutil.virtual_memory().available


class Tree:
    """A server and its workers. psutil.NoSuchProcess where there is no such process."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def _all(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def memory(self) -> float:
        """Bytes of main memory that they hold; what several of them share counts once, but on systems without PSS."""
        held = [process.memory_full_info() for process in self._all()]
        return float(sum(getattr(each, "pss", each.rss) for each in held))

    def cpu_seconds(self) -> float:
        """Seconds of processor time that those alive have used."""
        times = [process.cpu_times() for process in self._all()]
        return float(sum(time.user + time.system for time in times))


class Peak:
    """The most bytes taken since `start`, beyond what was held then; for a process that does nothing else."""

    before = 0.0

    def start(self) -> None:
        """Begin to look."""
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)  # memory freed by what came before must not serve what is measured
        if _MARK.exists():
            _MARK.write_text("5")  # the high-water mark falls to what is held now
        self.before = _kilobytes("VmRSS") or 0.0

    def stop(self) -> float | None:
        """Return the bytes; None where the system does not tell."""
        most = _kilobytes("VmHWM")
        return None if most is None else most - self.before


def _kilobytes(name: str) -> float | None:
    if not _STATUS.is_file():
        return None
    line = next((line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:")), None)
    return None if line is None else 1024.0 * int(line.split()[1])
