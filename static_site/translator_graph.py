"""The shipped Transformer as two ONNX graphs that also return queries and keys of every attention layer.

encoder   source (1, n), gates -> the queries and keys of each encoder layer, and the keys and values that each
          decoder layer attends to
decoder   tokens (b, t), gates, keys and values so far -> logits, queries, and keys and values with these t steps

Both also return the states of each layer, which the page of the walk shows.

With no step so far the decoder is the teacher-forced pass, with t = 1 a step of greedy search, with b > 1 one of beam
search. A gate multiplies the output of its head before W_o: 1 leaves it, 0 switches it off (Michel 2019, equation 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from static_site.model_files import WeightStore, export_graph
from viz_core.attention.multi_head import KeysValues, MultiHeadAttention
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.models.transformer import TransformerEncoder
from viz_core.models.transformer_decoder import BlockCache, DecoderState, TransformerDecoder


class EncoderGraph(nn.Module):
    """The encoder with the projections of the decoder's cross-attention."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.encoder: TransformerEncoder = model.encoder
        self.decoder: TransformerDecoder = model.decoder

    def forward(self, source: Tensor, gates: Tensor) -> tuple[Tensor, ...]:
        """Return queries and keys (1, heads, n, d) of each layer, keys and values of each cross-attention, states."""
        layers = [block.attention for block in self.encoder.blocks]
        with gated(layers, gates), projections(layers) as found, _outputs(_states_of(self.encoder)) as walked:
            states = self.encoder(source)
        own = [tensor for layer in layers for tensor in found[layer]]
        crossed = [tensor for block in self.decoder.blocks for tensor in block.attention2.project(states, states)]
        return (*own, *crossed, *walked.values())


class DecoderGraph(nn.Module):
    """The decoder with its cache as inputs and outputs."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.decoder: TransformerDecoder = model.decoder

    def forward(self, tokens: Tensor, gates: Tensor, past: list[Tensor], crossed: list[Tensor]) -> tuple[Tensor, ...]:
        """Return logits (b, t, vocab), each layer's own queries, keys, values and queries of cross-attention, states.

        Args:
            gates: (2, layers, heads), of self- and cross-attention.
            past: keys and values (b, heads, p, d) of each layer's self-attention so far.
            crossed: keys and values (1, heads, n, d) of each layer's cross-attention.
        """
        blocks = self.decoder.blocks
        batch = tokens.shape[0]
        caches = tuple(
            BlockCache(
                KeysValues(*past[2 * i : 2 * i + 2]),
                KeysValues(*(tensor.expand(batch, -1, -1, -1) for tensor in crossed[2 * i : 2 * i + 2])),
            )
            for i in range(len(blocks))
        )
        own, cross = ([getattr(block, name) for block in blocks] for name in ("attention1", "attention2"))
        states = torch.zeros(1)  # the encoder's output is in `crossed` already
        with (
            gated(own, gates[0]),
            gated(cross, gates[1]),
            projections([*own, *cross]) as found,
            _outputs(_states_of(self.decoder)) as walked,
        ):
            logits, state = self.decoder(tokens, DecoderState(states, None, caches))
        made: list[Tensor] = []
        for i in range(len(blocks)):
            cache = state.caches[i]
            made += [found[own[i]][0], cache.own.keys, cache.own.values, found[cross[i]][0]]
        return (logits, *made, *walked.values())


@contextmanager
def projections(layers: list[MultiHeadAttention]) -> Iterator[dict[MultiHeadAttention, list[Tensor]]]:
    """Collect what W_q and W_k of each layer return, split into heads: `record` sees nothing under torch.export."""
    found: dict[MultiHeadAttention, list[Tensor]] = {layer: [] for layer in layers}

    def keep(layer: MultiHeadAttention) -> Any:
        return lambda _module, _inputs, output: found[layer].append(_split(output, layer.head_dim))

    hooks = [matrix.register_forward_hook(keep(layer)) for layer in layers for matrix in (layer.W_q, layer.W_k)]
    try:
        yield found
        for layer in layers:
            found[layer] = found[layer][::-1] if len(found[layer]) == 2 else found[layer]  # keys are projected first
    finally:
        for hook in hooks:
            hook.remove()


def _states_of(stack: TransformerEncoder | TransformerDecoder) -> dict[str, nn.Module]:
    """The modules whose outputs (b, n, width) are the states of a walk, by the names of these states."""
    modules: dict[str, nn.Module] = {"embedding": stack.pos_encoding}
    blocks: tuple[Any, ...] = tuple(stack.blocks)
    for i, block in enumerate(blocks):
        if isinstance(stack, TransformerDecoder):
            attentions = {"self": (block.attention1, block.addnorm1), "cross": (block.attention2, block.addnorm2)}
            last = block.addnorm3
        else:
            attentions, last = {"self": (block.attention, block.addnorm1)}, block.addnorm2
            modules[f"{i}.self.values"] = block.attention.W_v
        for name, (attention, addnorm) in attentions.items():
            modules |= {f"{i}.{name}.added": attention.W_o, f"{i}.{name}.state": addnorm}
        modules |= {f"{i}.neurons": block.ffn.relu, f"{i}.ffn": block.ffn, f"{i}.output": last}
    return modules


@contextmanager
def _outputs(modules: dict[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Collect what modules return, in the order of their names."""
    found: dict[str, Tensor] = {}
    hooks = []
    for name, module in modules.items():

        def keep(_module: nn.Module, _inputs: Any, output: Tensor, name: str = name) -> None:
            found[name] = output

        hooks.append(module.register_forward_hook(keep))
    try:
        yield found
        ordered = {name: found[name] for name in modules}
        found.clear()
        found.update(ordered)
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def gated(layers: list[MultiHeadAttention], gates: Tensor) -> Iterator[None]:
    """Multiply the output of each head by its gate."""

    def multiply(layer: MultiHeadAttention, gate: Tensor) -> Any:
        return lambda _module, inputs: (inputs[0] * gate.repeat_interleave(layer.head_dim),)

    hooks = [layer.W_o.register_forward_pre_hook(multiply(layer, gates[i])) for i, layer in enumerate(layers)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _split(projected: Tensor, head_dim: int) -> Tensor:
    batch, n, width = projected.shape
    return projected.reshape(batch, n, width // head_dim, head_dim).transpose(1, 2)


def export_translator(model: EncoderDecoder) -> tuple[dict[str, bytes], WeightStore]:
    """Return the graphs "encoder" and "decoder" of a Transformer, and the weights that they share."""
    encoder, decoder = model.encoder, model.decoder
    layers, heads = len(encoder.blocks), encoder.blocks[0].attention.num_heads
    size = encoder.blocks[0].attention.head_dim
    rows, width = encoder.pos_encoding.P.shape[1:]
    table = "encoder.pos_encoding.P"
    store = WeightStore(
        {table: encoder.pos_encoding.P} | dict(model.named_parameters()),
        {table: {"sinusoids": [rows, width, 10000.0]}},
    )
    free = Dim.DYNAMIC
    numbers = range(layers)
    source, gates = torch.arange(4, 11)[None], torch.ones(layers, heads)
    own = [f"encoder.{i}.self.{part}" for i in numbers for part in ("queries", "keys")]
    crossed = [f"decoder.{i}.cross.{part}" for i in numbers for part in ("keys", "values")]
    past = [f"past.{i}.{part}" for i in numbers for part in ("keys", "values")]
    parts = ("self.queries", "self.keys", "self.values", "cross.queries")
    made = [f"decoder.{i}.{part}" for i in numbers for part in parts]
    graphs = {
        "encoder": export_graph(
            EncoderGraph(model),
            (source, gates),
            ({1: free}, None),
            (["source", "gates"], [*own, *crossed, *(f"encoder.{name}" for name in _states_of(encoder))]),
            store,
        ),
        "decoder": export_graph(
            DecoderGraph(model),
            (
                torch.arange(4, 10).reshape(2, 3),
                torch.ones(2, layers, heads),
                [torch.randn(2, heads, 5, size) for _ in past],
                [torch.randn(1, heads, 7, size) for _ in crossed],
            ),
            ({0: free, 1: free}, None, [{0: free, 2: free}] * len(past), [{2: free}] * len(crossed)),
            (
                ["tokens", "gates", *past, *crossed],
                ["logits", *made, *(f"decoder.{name}" for name in _states_of(decoder))],
            ),
            store,
        ),
    }
    assert decoder.num_blks == layers
    return graphs, store
