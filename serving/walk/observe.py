"""A pass of a model whose layers are recorded, as arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool
from torch import Tensor

from serving.walk.steps import Attention, Block
from viz_core.trace import AttentionCall, Trace, head_outputs
from viz_core.trace.source import Projected


def state_of(trace: Trace, name: str) -> np.ndarray:
    """Return a state of the only text of the batch."""
    return as_array(trace.states[name][0])


def blocks_of(stack: str, trace: Trace) -> tuple[Block, ...]:
    """Return the blocks of a stack that a pass went through."""
    before, blocks = state_of(trace, f"{stack}.embedding"), list[Block]()
    while (name := f"{stack}.{len(blocks)}") + ".residual" in trace.states:
        attentions = tuple(_attention(call, trace) for call in trace if call.site.startswith(f"{name}."))
        states = (state_of(trace, f"{name}.{part}") for part in ("neurons", "mlp", "residual"))
        blocks.append(Block(before, attentions, *states))
        before = blocks[-1].output
    return tuple(blocks)


def _attention(call: AttentionCall, trace: Trace) -> Attention:
    """Return one call of attention as arrays, with the states around it."""
    source, outputs, layer = call.source, head_outputs(call)[0], call.site.rpartition(".")[0]
    part = "cross" if call.kind == "cross" else "attention"
    assert isinstance(source, Projected)  # as all shipped models compute it
    keys = source.keys.repeat_interleave(call.num_heads // source.keys.shape[1], dim=1)
    scores = (source.queries.float() @ keys.float().mT) * source.scale
    return Attention(
        call.site,
        as_array(source.queries[0]),
        as_array(source.keys[0]),
        as_array(call.values[0]),
        as_array(scores[0]),
        _allowed(source)[0].cpu().numpy(),
        as_array(call.weights()[0]),
        as_array(outputs),
        as_array(rearrange(outputs, "h n v -> n (h v)")),
        state_of(trace, f"{layer}.{part}"),
        state_of(trace, f"{layer}.residual_{part}"),
    )


def _allowed(source: Projected) -> Bool[Tensor, "batch heads rows columns"]:
    """Return where a query may attend to a key; as without edits for a head that is switched off."""
    _, heads, rows, _ = source.shape
    edited, own = (
        each.scores(slice(0, heads), slice(0, rows)).isfinite() for each in (source, replace(source, edits=None))
    )
    return torch.where(edited.any(dim=(-2, -1), keepdim=True), edited, own)


def as_array(values: Tensor) -> np.ndarray:
    """Return a tensor as float32 on the CPU."""
    return values.float().cpu().numpy()
