"""The device models run on."""

import os

import torch

from viz_core.runtime.refusal import RefusalError


class DeviceError(RefusalError, ValueError):
    """A device that this machine does not have; the message names those it has."""


def best_device() -> torch.device:
    """Return the device models run on: cuda, then mps, then cpu; ATLAS_DEVICE overrides.

    Raises:
        DeviceError: if ATLAS_DEVICE names a device this machine does not have.
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
