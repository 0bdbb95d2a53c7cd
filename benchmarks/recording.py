"""A forward pass with all maps available: recorded, against fused without maps and eager with them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import torch

from benchmarks.random_models import WAYS, bert, forward, random_tokens
from benchmarks.report import Row
from benchmarks.sampling import MB, Peak, fits, in_turns, stopwatch
from benchmarks.serving import ROOT
from viz_core.trace import Trace

SIZES = (128, 512, 1024, 2048, 4096)
GPU_SIZES = (*SIZES, 16384)
MAX_SECONDS = 25.0  # of timing at one size
QUICK = {"sizes": (64,), "samples": 1}
LAYERS, HEADS = 6, 12
ROUNDING = 1e-5
TELLING = 2048  # tokens

# Times the fused pass, and megabytes held: at 2,048 tokens as DESIGN.md promises, at 4,096 as the model lab does.
TIME_TARGETS = {2048: 1.05, 4096: 1.1}
HELD_TARGETS = {2048: 40.0, 4096: 96.6}  # the second is a fiftieth of the whole maps

PEERS = {"fused": "fused, no maps", "eager": "eager output_attentions"}
UNKNOWN = "this system does not tell"


def measure(device: str = "cpu", sizes: Sequence[int] | None = None, samples: int = 9) -> list[Row]:
    """Seconds, megabytes at the peak and megabytes held, of BERT with 6 layers of 384 and 12 heads.

    Raises:
        RuntimeError: if recorded and eager maps differ, or a fresh process fails.
    """
    models = {way: bert(way, device) for way in WAYS}
    few = random_tokens(48, device)
    check_alike(forward("record", models["record"], few), forward("eager", models["eager"], few))
    rows = []
    for n in sizes or (GPU_SIZES if device == "cuda" else SIZES):
        ways = [way for way in WAYS if way != "eager" or fits(eager_bytes(n), device)]
        note = "" if "eager" in ways else f"needs {eager_bytes(n) / 1e9:.0f} GB"
        rows += _times(models, ways, n, device, samples, note)
        rows += _memory(ways, n, device, note)
    return rows


def eager_bytes(n: int) -> float:
    """What eager attention holds, and needs besides for the layer it is at: three maps of each head."""
    return 4.0 * HEADS * n * n * (LAYERS + 3)


def check_alike(trace: Trace, maps: Sequence[torch.Tensor]) -> None:
    """Before anything is timed: what is compared gives the same maps.

    Raises:
        RuntimeError: if it does not.
    """
    apart = max(float((call.weights() - eager.cpu()).abs().max()) for call, eager in zip(trace, maps, strict=True))
    if apart > ROUNDING:
        raise RuntimeError(f"recorded maps differ from eager ones by {apart:.1e}, expected at most {ROUNDING:.0e}")


def _times(models: dict[str, object], ways: list[str], n: int, device: str, samples: int, note: str) -> list[Row]:
    tokens, target = random_tokens(n, device), TIME_TARGETS.get(n)
    calls = {way: lambda way=way: forward(way, models[way], tokens) for way in ways}
    times = in_turns(calls, stopwatch(device), samples=samples, fewest=3, max_seconds=MAX_SECONDS)
    what, ours, eager = f"forward and record, {n:,} tokens", times["record"], times.get("eager", ())
    return [
        Row(what, "s", ours, PEERS["fused"], times["fused"], target, relative=target is not None),
        Row(what, "s", ours, PEERS["eager"], eager, headline=n == TELLING, note=note),
    ]


def _memory(ways: list[str], n: int, device: str, note: str) -> list[Row]:
    found = {way: in_fresh_process(way, n, device) for way in ways}
    peaks = {way: () if peak is None else (peak / MB,) for way, (peak, _) in found.items()}
    held = {way: (each / MB,) for way, (_, each) in found.items()}
    what, fused, eager = f"peak memory of it, {n:,} tokens", PEERS["fused"], PEERS["eager"]
    name, target = f"stored for viewing, {n:,} tokens", HELD_TARGETS.get(n)
    return [
        Row(what, "MB", peaks["record"], fused, peaks["fused"], note=UNKNOWN),
        Row(what, "MB", peaks["record"], eager, peaks.get("eager", ()), headline=n == TELLING, note=note or UNKNOWN),
        Row(name, "MB", held["record"], eager, held.get("eager", ()), target, note=note),
    ]


def in_fresh_process(way: str, n: int, device: str) -> tuple[float | None, float]:
    """Bytes at the peak of one pass, and bytes held after it, in an interpreter that does nothing else."""
    command = [sys.executable, "-m", "benchmarks.recording", way, str(n), device]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed: {answer.stderr[-500:]}")
    peak, held = json.loads(answer.stdout.splitlines()[-1])
    return peak, held


def _one_pass(way: str, n: int, device: str) -> tuple[float | None, float]:
    model, tokens, peak = bert(way, device), random_tokens(n, device), Peak(device)
    forward(way, model, random_tokens(8, device))  # buffers of the library that stay are not the pass's
    peak.start()
    result = forward(way, model, tokens)
    return peak.stop(), bytes_held(result)


def bytes_held(result: object) -> float:
    """Bytes of a trace, or of a tuple of maps; an output alone holds no attention."""
    if isinstance(result, Trace):
        return float(result.nbytes)
    maps: Sequence[torch.Tensor] = result if isinstance(result, tuple) else ()
    return float(sum(each.nbytes for each in maps))


if __name__ == "__main__":
    print(json.dumps(_one_pass(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
