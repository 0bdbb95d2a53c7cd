"""Times of a view's requests: one head's exact map, one tile, all thumbnails; against maps that are all stored."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.random_models import bert, forward, random_tokens
from benchmarks.recording import EAGER, eager_bytes
from benchmarks.report import Row
from benchmarks.sampling import fits, in_turns, milliseconds
from viz_core.trace import Trace

SIZES = (128, 512, 2048, 4096)
LAYER, HEAD, TILE = 3, 5, 256
THUMBNAIL = 64
QUICK = {"sizes": (64,), "samples": 1}
Queries = dict[str, Callable[[], object]]


def measure(sizes: Sequence[int] = SIZES, samples: int = 9) -> list[Row]:
    """Return milliseconds of reading maps, alone and with a forward pass."""
    rows = []
    models = {way: bert(way) for way in ("record", "eager")}
    for n in sizes:
        tokens = random_tokens(n)
        possible = fits(eager_bytes(n))
        note = "" if possible else f"needs {eager_bytes(n) / 1e9:.0f} GB"
        ours = our_queries(models["record"], tokens)
        peers = eager_queries(models["eager"], tokens) if possible else {}
        for name, call in ours.items():
            calls = {"ours": call} | ({"eager": peers[name]} if possible else {})
            with torch.inference_mode():
                times = milliseconds(in_turns(calls, samples=samples, max_seconds=5))
            rows.append(Row(f"{name}, {n:,} tokens", "ms", times["ours"], EAGER, times.get("eager", ()), note=note))
    return rows


def our_queries(model: Any, tokens: Tensor) -> Queries:
    """Return maps that a reader sees, from a trace."""
    trace: Trace = forward("record", model, tokens)
    call = list(trace)[LAYER]
    some = slice(0, TILE)
    return {
        "one head's map": lambda: call.weights(head=HEAD),
        f"one tile of {TILE} x {TILE}": lambda: call.weights(head=HEAD, queries=some, keys=some),
        "thumbnails of one layer": lambda: call.overview(THUMBNAIL),
        "all thumbnails": lambda: [each.overview(THUMBNAIL) for each in trace],
        "forward and one head's map": lambda: list(forward("record", model, tokens))[LAYER].weights(head=HEAD),
    }


def eager_queries(model: Any, tokens: Tensor) -> Queries:
    """The same from a tuple of maps."""
    maps: Sequence[Tensor] = forward("eager", model, tokens)
    layer = maps[LAYER]

    def thumbnails(one: Tensor) -> Tensor:
        rows, columns = (min(THUMBNAIL, size) for size in one.shape[-2:])
        return F.adaptive_max_pool2d(one, (rows, columns))

    return {
        "one head's map": lambda: layer[:, HEAD].clone(),
        f"one tile of {TILE} x {TILE}": lambda: layer[:, HEAD, :TILE, :TILE].clone(),
        "thumbnails of one layer": lambda: thumbnails(layer),
        "all thumbnails": lambda: [thumbnails(each) for each in maps],
        "forward and one head's map": lambda: forward("eager", model, tokens)[LAYER][:, HEAD].clone(),
    }
