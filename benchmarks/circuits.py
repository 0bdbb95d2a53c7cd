"""States, all maps and a patch sweep of a small GPT-2: against plain hooks and eager attention."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from benchmarks.recording import EAGER
from benchmarks.report import Row
from benchmarks.sampling import MB, in_turns, milliseconds
from viz_core.circuits import patch_sweep
from viz_core.hub import instrument
from viz_core.trace import record

QUICK = {"layers": 2, "n": 6, "long": 12, "samples": 1}
AT_ONCE = 16  # cells in one batch, by hooks as in the library
TARGET = 0.95  # times plain hooks, or eager attention
SAME, SAME_MEMORY = 1.02, 1.1  # times plain hooks


def measure(layers: int = 12, n: int = 40, long: int = 512, samples: int = 5) -> list[Row]:
    """Seconds of a sweep, layers by positions, of a pass with states and of all maps of a long text.

    On one thread, both ways in turns, results compared. RuntimeError if the two give different results.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measure(layers, n, long, samples)
    finally:
        torch.set_num_threads(threads)


def _measure(layers: int, n: int, long: int, samples: int) -> list[Row]:
    model, plain = gpt2(layers)
    wide, plain_wide = gpt2(layers // 2, width=384)
    eager, text = copy.deepcopy(plain_wide), torch.randint(3, 1000, (1, long))
    eager.set_attn_implementation("eager")
    clean, corrupted = (torch.randint(3, 1000, (1, n)) for _ in range(2))

    def ours() -> Tensor:
        return patch_sweep(model, {"input_ids": clean}, {"input_ids": corrupted}, metric)

    sweeps = {"ours": ours, "hooks": lambda: swept(plain, clean, corrupted)}
    if not torch.allclose(sweeps["ours"](), sweeps["hooks"](), atol=1e-3, rtol=1e-3):
        raise RuntimeError("the sweep and that of plain hooks differ")
    times = in_turns(sweeps, samples=samples, fewest=3, max_seconds=120.0)
    passes = milliseconds(
        in_turns(
            {
                "ours": lambda: recorded(model, clean),
                "hooks": lambda: seen(plain, clean),
                "plain": lambda: plain(clean),
            },
            samples=4 * samples,
        )
    )
    maps = milliseconds(
        in_turns({"ours": lambda: all_maps(wide, text), "eager": lambda: returned(eager, text)}, samples=8 * samples)
    )
    streams = milliseconds(
        in_turns(
            {"ours": lambda: stream(wide, text), "hooks": lambda: seen(plain_wide, text, ("",))}, samples=8 * samples
        )
    )
    stored = stream(wide, text).nbytes / MB, sum(each.nbytes for each in seen(plain_wide, text, ("",)).values()) / MB
    alone = f"residual stream of {layers // 2} layers recorded, {long} tokens"
    what = f"states of {layers} layers recorded, {n} tokens"
    sweep = f"patch sweep, {layers} layers by {n} positions"
    return [
        Row(sweep, "s", times["ours"], f"plain hooks, {AT_ONCE} cells a run", times["hooks"], TARGET, relative=True),
        Row(what, "ms", passes["ours"], "plain hooks", passes["hooks"]),
        Row(what, "ms", passes["ours"], "a pass that records nothing", passes["plain"]),
        Row(alone, "ms", streams["ours"], "plain hooks", streams["hooks"], SAME, relative=True),
        Row(f"{alone}: stored", "MB", stored[:1], "plain hooks", stored[1:], SAME_MEMORY, relative=True),
        Row(f"forward and all maps, {long} tokens", "ms", maps["ours"], EAGER, maps["eager"], TARGET, relative=True),
    ]


def gpt2(layers: int, width: int = 256) -> tuple[Any, Any]:
    """A GPT-2 of 32 numbers a head with random weights: one for `record`, one for hooks."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=layers, n_head=width // 32, n_embd=width, vocab_size=1000, bos_token_id=1, eos_token_id=1
    )
    plain = GPT2LMHeadModel(config).eval().requires_grad_(False)
    model = copy.deepcopy(plain)
    instrument(model)
    return model, plain


def metric(logits: Tensor) -> Tensor:
    return logits[0, -1, 5] - logits[0, -1, 6]


@torch.no_grad()
def recorded(model: Any, tokens: Tensor, **what: Any) -> Any:
    with record(**(what or {"values": True, "states": True})) as trace:
        model(tokens)
    return trace


def stream(model: Any, tokens: Tensor) -> Any:
    return recorded(model, tokens, states=("residual",), attention=False)


def all_maps(model: Any, tokens: Tensor) -> list[Tensor]:
    return [call.weights() for call in recorded(model, tokens, values=False)]


@torch.no_grad()
def returned(eager: Any, tokens: Tensor) -> tuple[Tensor, ...]:
    maps: tuple[Tensor, ...] = eager(tokens, output_attentions=True).attentions
    return maps


@torch.no_grad()
def seen(plain: Any, tokens: Tensor, parts: tuple[str, ...] = ("", "attn", "mlp")) -> dict[tuple[int, str], Tensor]:
    """The residual stream, and what attentions and feed-forward nets add, by hooks that store them."""
    found: dict[tuple[int, str], Tensor] = {}
    hooks = {
        (layer, name): lambda x, at=(layer, name): found.update({at: x})
        for layer in range(len(plain.transformer.h))
        for name in parts
    }
    with hooked(plain, hooks):
        plain(tokens)
    return found


@torch.no_grad()
def swept(plain: Any, clean: Tensor, corrupted: Tensor) -> Tensor:
    """The sweep of the residual stream by hooks that replace one position in each row of a batch."""
    states, n, rows = seen(plain, clean), clean.shape[1], []
    for layer in range(len(plain.transformer.h)):
        row = []
        for places in torch.arange(n).split(AT_ONCE):
            batch, value = torch.arange(len(places)), states[layer, ""][0]

            def replaced(x: Tensor, batch: Tensor = batch, places: Tensor = places, value: Tensor = value) -> Tensor:
                x = x.clone()
                x[batch, places] = value[places]
                return x

            with hooked(plain, {(layer, ""): replaced}):
                logits = plain(corrupted.expand(len(places), -1)).logits
            row += [metric(each[None]) for each in logits]
        rows.append(torch.stack(row))
    return torch.stack(rows)


@contextmanager
def hooked(plain: Any, hooks: dict[tuple[int, str], Callable[[Tensor], Any]]) -> Iterator[None]:
    handles = []
    for (layer, name), hook in hooks.items():

        def after(_module: Any, _given: Any, output: Any, hook: Callable[[Tensor], Any] = hook) -> Any:
            new = hook(output[0] if isinstance(output, tuple) else output)
            return None if new is None else (new, *output[1:]) if isinstance(output, tuple) else new

        block = plain.transformer.h[layer]
        handles.append((getattr(block, name) if name else block).register_forward_hook(after))
    yield
    for handle in handles:
        handle.remove()
