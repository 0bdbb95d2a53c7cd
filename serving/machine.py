"""Cores and memory that this process may use: a container has less than its machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_UNLIMITED = 2**62  # version 1 of control groups writes about 2^63 where nothing is limited


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Return the number of cores by affinity and by the quota of the control group, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, int(_quota(cgroup) or cores)))


def usable_memory(cgroup: Path = _CGROUP) -> int:
    """Return the bytes of memory of the machine, or of the control group where that has fewer."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max" means no limit
            limit = int((cgroup / name).read_text(encoding="ascii"))
            return min(memory, limit) if 0 < limit < _UNLIMITED else memory
    return memory


def _quota(cgroup: Path) -> float | None:
    """Cores' worth of time, by version 2 or 1 of control groups; None where nothing is limited."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # "max 100000" means no limit
            quota, period = " ".join((cgroup / name).read_text(encoding="ascii") for name in names).split()
            return max(1.0, int(quota) / int(period)) if int(quota) > 0 else None
    return None
