"""Memory that a model needs, and whether it is available."""

import os
from pathlib import Path

import torch

from viz_core.hub.store.errors import HubError
from viz_core.runtime.device import fast_precision

_OVERHEAD = 1.15  # beside the parameters: buffers, one tensor in two precisions while loading, a short input
_SHARE = 0.8  # of the memory that is free


def precision(device: torch.device) -> torch.dtype:
    """Half precision (bfloat16) on a GPU that multiplies it, else float32."""
    return fast_precision(device) if device.type == "cuda" else torch.float32


def estimate_bytes(num_parameters: int, dtype: torch.dtype) -> int:
    """Bytes a loaded model takes: each parameter at its size, and an eighth or so beside them."""
    return int(num_parameters * dtype.itemsize * _OVERHEAD)


def free_bytes(device: torch.device) -> int:
    """Bytes that are free on a device now."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    info = Path("/proc/meminfo")
    if info.is_file():
        fields = dict(line.split(":", 1) for line in info.read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def check_budget(name: str, needed: int, budget: int | None, device: torch.device) -> None:
    """Refuse a model that needs more bytes than the budget, or than four fifths of what is free on the device."""
    allowed = int(free_bytes(device) * _SHARE) if budget is None else budget
    if needed > allowed:
        raise HubError(
            "{name} needs about {needed} of memory; {allowed} are allowed here. Choose a smaller model.",
            name=name,
            needed=human_bytes(needed),
            allowed=human_bytes(allowed),
        )


def human_bytes(count: int) -> str:
    """ "91 MB", "2.4 GB": decimal units, two digits where it matters."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            value = count / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{count} B"
