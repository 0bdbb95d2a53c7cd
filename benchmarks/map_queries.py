"""Times of a view's requests: one head's exact map, one tile, all thumbnails; against maps that are all stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.random_models import bert, forward, random_tokens
from benchmarks.recording import PEERS, eager_bytes
from benchmarks.report import Row
from benchmarks.sampling import MB, Peak, fits, in_turns, milliseconds, stopwatch
from viz_core.trace import Trace, attend, record

SIZES = (128, 512, 2048, 4096)
LAYER, HEAD, TILE = 3, 5, 256
THUMBNAIL = 64
CAUSAL = 16_384
"""Tokens of the map of which a causal tile and thumbnail are held against the same without a mask."""
CAUSAL_HEADS, WIDTH = 1, 64
QUICK = {"sizes": (64,), "samples": 1, "causal": 256}


def measure(device: str = "cpu", sizes: Sequence[int] = SIZES, samples: int = 9, causal: int = CAUSAL) -> list[Row]:
    """Return milliseconds of reading maps, alone and with a forward pass."""
    rows = []
    ours, eager = bert("record", device), bert("eager", device)
    watch = stopwatch(device)
    for n in sizes:
        tokens = random_tokens(n, device)
        trace = forward("record", ours, tokens)
        possible = fits(eager_bytes(n), device)
        maps = forward("eager", eager, tokens) if possible else None
        note = "" if possible else f"needs {eager_bytes(n) / 1e9:.0f} GB"
        calls = {f"ours {name}": call for name, call in our_queries(trace).items()}
        if maps is not None:
            calls |= {f"eager {name}": call for name, call in eager_queries(maps).items()}
        times = milliseconds(in_turns(calls, watch, samples=samples, max_seconds=10))
        for name in our_queries(trace):
            what = f"{name}, {n:,} tokens"
            peer = times.get(f"eager {name}", ())
            rows.append(Row(what, "ms", times[f"ours {name}"], PEERS["eager"], peer, note=note))
        del trace, maps, calls
        rows.append(_forward_and_read(ours, eager if possible else None, tokens, device, samples, note))
    return rows + _causal(causal, device, samples)


def _causal(n: int, device: str, samples: int) -> list[Row]:
    """One head's tile and thumbnail of a causal map, in time and memory, beside those of a map without a mask."""
    queries, keys = (torch.randn(1, CAUSAL_HEADS, n, WIDTH, device=device) for _ in range(2))
    with torch.inference_mode(), record() as trace:
        attend(queries, keys, keys, causal=True, site="causal")
        attend(queries, keys, keys, site="plain")
    some = slice(n // 2, n // 2 + TILE)
    rows = []
    for name, read in {
        f"one tile of {TILE} x {TILE}": lambda call: call.weights(head=0, queries=some, keys=slice(0, TILE)),
        "thumbnail": lambda call: call.overview(THUMBNAIL),
    }.items():
        calls = {site: partial(read, trace[site]) for site in trace.sites}
        times = milliseconds(in_turns(calls, stopwatch(device), samples=samples, max_seconds=60))
        what = f"{name} of a causal head, {n:,} tokens"
        rows.append(Row(what, "ms", times["causal"], "no mask", times["plain"], target=1.5, relative=True))
        peaks = {site: _peak(call, device) for site, call in calls.items()}
        if peaks["causal"] is not None and peaks["plain"] is not None:
            ours, plain = ((peaks[site] / MB,) for site in ("causal", "plain"))
            rows.append(Row(f"peak memory of it: {what}", "MB", ours, "no mask", plain, target=1.5, relative=True))
    return rows


def _peak(read: Callable[[], object], device: str) -> float | None:
    peak = Peak(device)
    peak.start()
    read()
    return peak.stop()


def our_queries(trace: Trace) -> dict[str, object]:
    """Return maps that a reader sees, from a trace, on the CPU."""
    call = list(trace)[LAYER]
    some = slice(0, TILE)
    return {
        "one head's map": lambda: call.weights(head=HEAD),
        f"one tile of {TILE} x {TILE}": lambda: call.weights(head=HEAD, queries=some, keys=some),
        "thumbnails of one layer": lambda: call.overview(THUMBNAIL),
        "all thumbnails": lambda: [each.overview(THUMBNAIL) for each in trace],
    }


def eager_queries(maps: Sequence[Tensor]) -> dict[str, object]:
    """The same from a tuple of maps."""
    layer = maps[LAYER]
    return {
        "one head's map": lambda: layer[:, HEAD].clone().cpu(),
        f"one tile of {TILE} x {TILE}": lambda: layer[:, HEAD, :TILE, :TILE].clone().cpu(),
        "thumbnails of one layer": lambda: _thumbnails(layer),
        "all thumbnails": lambda: [_thumbnails(each) for each in maps],
    }


def _thumbnails(layer: Tensor) -> Tensor:
    rows, columns = (min(THUMBNAIL, size) for size in layer.shape[-2:])
    return F.adaptive_max_pool2d(layer, (rows, columns)).cpu()


def _forward_and_read(ours: object, eager: object | None, tokens: Tensor, device: str, samples: int, note: str) -> Row:
    def recorded() -> Tensor:
        return list(forward("record", ours, tokens))[LAYER].weights(head=HEAD)

    def from_maps() -> Tensor:
        return forward("eager", eager, tokens)[LAYER][:, HEAD].clone().cpu()

    calls = {"ours": recorded} if eager is None else {"ours": recorded, "eager": from_maps}
    with torch.inference_mode():
        times = milliseconds(in_turns(calls, stopwatch(device), samples=samples, max_seconds=10))
    what, peer = f"forward and one head's map, {tokens.shape[1]:,} tokens", times.get("eager", ())
    return Row(what, "ms", times["ours"], PEERS["eager"], peer, headline=tokens.shape[1] == 2048, note=note)
