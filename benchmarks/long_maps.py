"""One head's tile and thumbnail of a map of 32,768 tokens, beside 16,384: of a softmax and of linear attention."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from benchmarks.map_queries import THUMBNAIL, TILE, WIDTH
from benchmarks.report import Row
from benchmarks.sampling import MB, Peak, stopwatch
from viz_core.trace import AttentionCall, attend, record
from viz_core.trace.linear_rule import LinearRule

SIZES = (32_768, 16_384)
SAMPLES = 7  # of a tile; a thumbnail is taken once
QUICK = {"sizes": (512, 256)}


def measure(sizes: tuple[int, int] = SIZES) -> list[Row]:
    """Milliseconds, and megabytes at the peak: at most twice those of half the length."""
    rows = []
    for rule, record_call in {
        "softmax": _softmax,
        "gated delta rule": lambda n: _linear(n, erases=True),
        "state-space duality": lambda n: _linear(n, erases=False),
    }.items():
        calls, small = [record_call(n) for n in sizes], record_call(TILE)
        for name, read in {
            f"one tile of {TILE} x {TILE}": _tile,
            "thumbnail": lambda call: call.overview(THUMBNAIL),
        }.items():
            what = f"{name} of a head with {'a ' if rule != 'state-space duality' else ''}{rule}, {sizes[0]:,} tokens"
            _measured(read, small)
            samples = SAMPLES if read is _tile else 1
            found = [[_measured(read, call) for _ in range(samples)] for call in calls]
            (times, peaks), (half_times, half_peaks) = (tuple(zip(*each, strict=True)) for each in found)
            peer = f"{sizes[1]:,} tokens"
            rows.append(Row(what, "ms", times, peer, half_times))
            if None not in (*peaks, *half_peaks):
                rows.append(Row(f"peak memory of it: {what}", "MB", peaks, peer, half_peaks, target=2.0, relative=True))
    return rows


def _softmax(n: int) -> AttentionCall:
    queries, keys = (torch.randn(1, 1, n, WIDTH) for _ in range(2))
    with torch.inference_mode(), record() as trace:
        attend(queries, keys, keys, causal=True, site="decoder.0.self")
    return trace["decoder.0.self"]


def _linear(n: int, erases: bool) -> AttentionCall:
    """A rule that keeps 99.9% of its state a token, so that no weight is cut short."""
    queries, keys = torch.randn(1, 1, n, WIDTH), F.normalize(torch.randn(1, 1, n, WIDTH), dim=-1)
    log_decay, strength = torch.full((1, 1, n), -0.001), torch.rand(1, 1, n)
    scale = WIDTH**-0.5
    source = LinearRule(queries, keys, None, None, True, scale, log_decay=log_decay, strength=strength, erases=erases)
    return AttentionCall("decoder.0.self", source)


def _tile(call: AttentionCall) -> torch.Tensor:
    middle = call.num_queries // 2
    return call.weights(head=0, queries=slice(middle, middle + TILE), keys=slice(0, TILE))


def _measured(read: Callable[[AttentionCall], torch.Tensor], call: AttentionCall) -> tuple[float, float | None]:
    """Milliseconds, and megabytes where the system tells."""
    peak = Peak()
    peak.start()
    seconds = stopwatch("cpu")(lambda: read(call))
    most = peak.stop()
    return 1e3 * seconds, None if most is None else most / MB
