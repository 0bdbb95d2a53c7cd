"""A step of multi-head attention with rotary positions, against the same step without positions."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.report import Row
from benchmarks.sampling import in_turns, stopwatch
from viz_core.attention import MultiHeadAttention
from viz_core.attention.multi_head import KeysValues
from viz_core.positional.rotary import Rotary

QUICK = {"samples": 1, "repeats": 2}
WIDTH, HEADS, STEPS = 256, 8, 32
MAX = 1.3  # times the step without; DESIGN.md, section 7


def measure(samples: int = 15, repeats: int = 20) -> list[Row]:
    """Microseconds of a decoder's step with a cache, mean over a text of 32 tokens written many times."""
    torch.manual_seed(0)
    layers = {
        "rotary": MultiHeadAttention(WIDTH, HEADS, positions=Rotary()).eval(),
        "none": MultiHeadAttention(WIDTH, HEADS).eval(),
    }
    tokens = torch.randn(STEPS, 1, 1, WIDTH)
    times = in_turns(
        {name: partial(written, layer, tokens, repeats) for name, layer in layers.items()},
        stopwatch("cpu"),
        samples=samples,
    )
    per_step = {name: tuple(1e6 * each / (repeats * STEPS) for each in found) for name, found in times.items()}
    what = "a step of MultiHeadAttention with rotary positions"
    return [Row(what, "microseconds", per_step["rotary"], "no positions", per_step["none"], MAX, relative=True)]


@torch.inference_mode()
def written(layer: MultiHeadAttention, tokens: torch.Tensor, repeats: int) -> None:
    """Attend token by token, each to those before it and itself."""
    for _ in range(repeats):
        cache: KeysValues | None = None
        for step, token in enumerate(tokens):
            new = layer.project(token, token, start=step)
            cache = (
                new if cache is None else KeysValues(*(torch.cat(pair, dim=2) for pair in zip(cache, new, strict=True)))
            )
            layer.attend_to(token, cache)
