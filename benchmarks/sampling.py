"""Taking times: what is compared runs in turns, so that a machine that slows down slows all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

Call = Callable[[], object]
Stopwatch = Callable[[Call], float]


def in_turns(
    calls: Mapping[str, Call],
    watch: Stopwatch,
    *,
    samples: int = 9,
    fewest: int = 1,
    most_seconds: float = 30.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, tuple[float, ...]]:
    """Seconds of every call: once to warm up, then round after round, each call once a round.

    At most `samples` rounds; after `fewest` of them, none begins once `most_seconds` have passed.

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
        if taken >= min(fewest, samples) and clock() - begun > most_seconds:
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
