"""Cores that this process may use: a container has fewer than its machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Return the number of cores by affinity and by the quota of the control group, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, int(_quota(cgroup) or cores)))


def _quota(cgroup: Path) -> float | None:
    """Cores' worth of time, by version 2 or 1 of control groups; None where nothing is limited."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # "max 100000" is no limit
            quota, period = " ".join((cgroup / name).read_text(encoding="ascii") for name in names).split()
            return max(1.0, int(quota) / int(period)) if int(quota) > 0 else None
    return None
