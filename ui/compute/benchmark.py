"""Time layers, one measurement at a time, so that a caller can show progress and stop."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

Clock = Callable[[], float]

_FEWEST_REPEATS, _MAX_REPEATS = 3, 20
_WARM_SECONDS = 0.05  # repeats end once they have taken as long as this
_one_at_a_time = threading.Lock()  # two stopwatches at once would measure each other


@dataclass(frozen=True)
class Measurement:
    """How long one call took, in seconds.

    Other load only makes a call slower, so the fastest repeat is closest to the cost of the call itself; the slowest
    shows the spread.

    Attributes:
        seconds: of the fastest repeat; None where one would have taken too long.
        slowest: of the slowest; None in the same case.
    """

    name: str
    n: int
    seconds: float | None
    slowest: float | None = None


def measure(
    names: Sequence[str],
    lengths: Sequence[int],
    prepare: Callable[[str, int], Callable[[], object]],
    *,
    device: torch.device | None = None,
    max_seconds: float = 1.0,
    total_seconds: float = 20.0,
    clock: Clock = time.perf_counter,
) -> Iterator[Measurement]:
    """Time every named call at every length, short lengths first; yield one measurement at a time.

    Each runs on one CPU thread, once to warm up and then three to twenty times; measurements of this process never run
    at the same time. A call is skipped (None) if its cost, extrapolated as n^2 from its last length, would exceed
    `max_seconds`. The iterator ends after `total_seconds` of measuring.

    Args:
        prepare: (name, n) -> the call to time, with its parameters and input made.
        device: on which the call runs; a GPU is waited for before the clock is read.
    """
    if max_seconds <= 0 or total_seconds <= 0:
        raise ValueError(f"expected limits above 0 seconds, got {max_seconds} and {total_seconds}")
    if any(n < 1 for n in lengths):
        raise ValueError(f"lengths: expected at least 1 each, got {min(lengths)}")
    spent = 0.0
    last: dict[str, tuple[int, float]] = {}
    for n in sorted(lengths):
        for name in names:
            before = last.get(name)
            if before is not None and before[1] * (n / before[0]) ** 2 > max_seconds:
                yield Measurement(name, n, None)
                continue
            if spent > total_seconds:
                return
            with _one_at_a_time, one_thread():
                begun = clock()
                times = _times(prepare(name, n), device, clock)
                spent += clock() - begun
            last[name] = (n, min(times))
            yield Measurement(name, n, min(times), max(times))


def growth(before: Measurement, after: Measurement) -> float:
    """Return the factor by which doubling the length multiplies the time: 2 if it grows with n, 4 with n^2.

    (t_b / t_a)^(log 2 / log(n_b / n_a)).
    """
    if before.seconds is None or after.seconds is None or before.n == after.n:
        raise ValueError(f"expected two measured lengths, got {before} and {after}")
    return (after.seconds / before.seconds) ** (math.log(2) / math.log(after.n / before.n))


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one CPU thread in this block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.inference_mode()
def _times(call: Callable[[], object], device: torch.device | None, clock: Clock) -> list[float]:
    call()  # the first call includes set-up costs
    _wait(device)
    times: list[float] = []
    while len(times) < _FEWEST_REPEATS or (len(times) < _MAX_REPEATS and sum(times) <= _WARM_SECONDS):
        begun = clock()
        call()
        _wait(device)
        times.append(clock() - begun)
    return times


def _wait(device: torch.device | None) -> None:
    """Wait for the device to finish."""
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device is not None and device.type == "mps":
        torch.mps.synchronize()
