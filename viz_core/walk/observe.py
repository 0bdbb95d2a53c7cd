"""A pass of a model whose parts are watched, by twins of them: the model itself stays as it is."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor, nn

from viz_core.torch_internals.twins import with_output_hook, with_parts
from viz_core.trace import AttentionCall, Trace, head_outputs, intervene, record
from viz_core.trace.source import Projected
from viz_core.walk.steps import Attention, Block, Edits, walk_edits


@dataclass(frozen=True)
class BlockPaths:
    """Where the parts of one block are in its model.

    Attributes:
        attentions: the site, the output projection, and the part whose output or input ("in") is the stream after it.
        expanded: the last matrix of the feed-forward net, whose input are the neurons.
    """

    block: str
    attentions: tuple[tuple[str, str, str, str], ...]
    expanded: str
    ffn: str


@dataclass
class Observed:
    """Inputs and outputs of the parts of a model during one pass, by path."""

    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)

    def watched(self, path: str, part: nn.Module) -> nn.Module:
        """Return a twin of a part that stores here what it is given and what it returns."""
        receive, give = partial(self.inputs.__setitem__, path), partial(self.outputs.__setitem__, path)
        made: nn.Module = with_output_hook(part, give, receive)
        return made

    def of(self, path: str, side: str = "out") -> np.ndarray:
        """Return the output of a part, or its input, of the only text of the batch."""
        return as_array((self.inputs if side == "in" else self.outputs)[path][0])


@contextmanager
def observing(
    model: nn.Module, parts: Sequence[str], paths: Mapping[str, Sequence[BlockPaths]], edits: Edits
) -> Iterator[tuple[Any, Observed, Trace]]:
    """Yield a twin of the model, what its parts see while it runs, and the trace; the model itself stays as it is."""
    seen = Observed()
    blocks = [block for stack in paths.values() for block in stack]
    watched = {*parts, *(path for block in blocks for path in (block.block, block.expanded, block.ffn))}
    watched |= {path for block in blocks for _, project, after, _ in block.attentions for path in (project, after)}
    twin = with_parts(model, {path: partial(seen.watched, path) for path in watched})
    with record(values=True) as trace, intervene(walk_edits(edits)):
        yield twin, seen, trace


def blocks_of(paths: Sequence[BlockPaths], seen: Observed, trace: Trace) -> tuple[Block, ...]:
    """Return the blocks that a pass went through, in the order of their paths."""
    return tuple(
        Block(
            seen.of(block.block, "in"),
            tuple(
                _attention(trace[site], seen.of(project, "in"), seen.of(project), seen.of(after, side))
                for site, project, after, side in block.attentions
            ),
            seen.of(block.expanded, "in"),
            seen.of(block.ffn),
            seen.of(block.block),
        )
        for block in paths
    )


def _attention(call: AttentionCall, joined: np.ndarray, added: np.ndarray, state: np.ndarray) -> Attention:
    """Return one call of attention as arrays, with the states around it."""
    source = call.source
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
        as_array(head_outputs(call)[0]),
        joined,
        added,
        state,
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
