"""Models with instruments, the same without, and what plain hooks do to the latter."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory
from viz_core.hub import instrument
from viz_core.models import TransformerEncoder
from viz_core.models.transformer import BlockOptions

CLEAN = torch.tensor([[5, 6, 7, 8, 9, 6], [5, 6, 7, 8, 0, 0]])
CORRUPTED = torch.tensor([[5, 6, 3, 8, 9, 6], [5, 11, 7, 8, 0, 0]])
HEADS, WIDTH = 4, 8


def metric(logits: Tensor) -> Tensor:
    return (logits[0, -1, 3] - logits[0, -1, 4]) + 0.5 * (logits[1, 3, 8] - logits[1, 3, 2])


@dataclass
class Layer:
    """One layer of a plain model: its attention, its feed-forward net, and its projections."""

    attention: nn.Module
    mlp: nn.Module
    out: nn.Module
    queries: nn.Module
    keys: nn.Module
    values: nn.Module
    fused: bool = False  # whether queries, keys and values are thirds of one output
    key_heads: int = HEADS

    def columns(self, name: str, head: int) -> slice:
        """Where a head is in the output of its projection."""
        head = head if name == "queries" else head // (HEADS // self.key_heads)
        start = head * WIDTH + (32 * ("queries", "keys", "values").index(name) if self.fused else 0)
        return slice(start, start + WIDTH)


def made(family: str, dtype: torch.dtype = torch.float32) -> tuple[Any, Any, dict[str, Any], dict[str, Any], str]:
    """A model with instruments, one without, the clean and the corrupted input, and the name of the stack."""
    if family == "ours":
        torch.manual_seed(4)
        encoder = TransformerEncoder(20, 32, 24, HEADS, 2, 0.0, True, options=BlockOptions(norm_first=True)).eval()
        for parameter in encoder.parameters():
            nn.init.normal_(parameter, std=0.6)
        inputs = [{"X": ids, "valid_lens": torch.tensor([6, 4])} for ids in (CLEAN, CORRUPTED)]
        return encoder.to(dtype), copy.deepcopy(encoder), *inputs, "encoder"
    model = in_memory(family)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # no gain at 1 and no bias at 0, where a mistake would not show
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    model = model.to(dtype)
    plain = copy.deepcopy(model)
    instrument(model)
    mask = (CLEAN > 0).long()
    inputs = [{"input_ids": ids, "attention_mask": mask} for ids in (CLEAN, CORRUPTED)]
    return model, plain, *inputs, "encoder" if family.startswith("bert") else "decoder"


def layers(plain: Any) -> list[Layer]:
    """The layers of a plain model."""
    if isinstance(plain, TransformerEncoder):
        return [
            Layer(b.attention, b.ffn, b.attention.W_o, b.attention.W_q, b.attention.W_k, b.attention.W_v)
            for b in plain.blocks
        ]
    if plain.config.model_type == "gpt2":
        return [
            Layer(b.attn, b.mlp, b.attn.c_proj, b.attn.c_attn, b.attn.c_attn, b.attn.c_attn, fused=True)
            for b in plain.transformer.h
        ]
    if plain.config.model_type == "llama":
        attentions = [(b, b.self_attn) for b in plain.model.layers]
        return [Layer(a, b.mlp, a.o_proj, a.q_proj, a.k_proj, a.v_proj, key_heads=2) for b, a in attentions]
    return [
        Layer(
            b.attention.output.dense, b.output.dense, b.attention.output.dense,
            b.attention.self.query, b.attention.self.key, b.attention.self.value,
        )
        for b in plain.bert.encoder.layer
    ]  # fmt: skip


def first(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else getattr(output, "logits", output)


@contextmanager
def hooks(changes: dict[tuple[nn.Module, str], Callable[[Tensor], Tensor | None]]) -> Iterator[None]:
    """Change what modules are given ("in") or return ("out"); a change that returns None only looks."""
    handles = []
    for (module, at), change in changes.items():

        def before(_m: nn.Module, given: Any, change: Any = change) -> Any:
            new = change(given[0])
            return None if new is None else (new, *given[1:])

        def after(_m: nn.Module, _given: Any, output: Any, change: Any = change) -> Any:
            new = change(first(output))
            return None if new is None else (new, *output[1:]) if isinstance(output, tuple) else new

        hooked = module.register_forward_pre_hook(before) if at == "in" else module.register_forward_hook(after)
        handles.append(hooked)
    yield
    for handle in handles:
        handle.remove()


def seen(plain: Any, inputs: Any, places: list[tuple[nn.Module, str]]) -> dict[tuple[nn.Module, str], Tensor]:
    """What is at these places when a plain model runs."""
    found: dict[tuple[nn.Module, str], Tensor] = {}
    with hooks({place: lambda x, place=place: found.update({place: x.clone()}) for place in places}):
        plain(**inputs)
    return found


def with_columns(x: Tensor, columns: slice, value: Tensor) -> Tensor:
    x = x.clone()
    x[..., columns] = value[..., columns]
    return x
