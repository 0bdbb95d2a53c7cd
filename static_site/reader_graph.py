"""The shipped reader, a small BERT, as an ONNX graph that also returns queries and keys of every layer.

reader    tokens (1, t), gates -> logits, and of each layer the queries and keys
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from static_site.onnx_files import WeightStore, export_graph
from viz_core.trace import attend


class ReaderGraph(nn.Module):
    """A BERT that predicts masked tokens; a gate multiplies the output of its head."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.bert = network.bert
        self.cls = network.cls

    def forward(self, tokens: Tensor, gates: Tensor) -> tuple[Tensor, ...]:
        """Return logits (1, t, vocab), then queries and keys (1, heads, t, d) of each layer.

        Args:
            gates: (layers, heads): 1 leaves a head, 0 switches it off.
        """
        embeddings = self.bert.embeddings
        steps = torch.arange(tokens.shape[1])[None]
        states = embeddings.word_embeddings(tokens) + embeddings.position_embeddings(steps)
        states = embeddings.LayerNorm(states + embeddings.token_type_embeddings(torch.zeros_like(tokens)))
        made: list[Tensor] = []
        for i, block in enumerate(self.bert.encoder.layer):
            layer = block.attention.self
            queries, keys, values = (
                matrix(states).unflatten(2, (-1, layer.attention_head_size)).transpose(1, 2)
                for matrix in (layer.query, layer.key, layer.value)
            )
            heads = attend(queries, keys, values) * gates[i][:, None, None]
            states = block.attention.output(heads.transpose(1, 2).flatten(2), states)
            states = block.output(block.intermediate(states), states)
            made += [queries, keys]
        return (self.cls(states), *made)


def export_reader(network: Any) -> tuple[dict[str, bytes], WeightStore]:
    """Return the graph "reader" of a BERT with its output layer, and its weights."""
    layers, heads = network.config.num_hidden_layers, network.config.num_attention_heads
    store = WeightStore(dict(network.named_parameters()))
    made = [f"encoder.{i}.{part}" for i in range(layers) for part in ("queries", "keys")]
    graph = export_graph(
        ReaderGraph(network),
        (torch.arange(4, 11)[None], torch.ones(layers, heads)),
        ({1: Dim.DYNAMIC}, None),
        (["tokens", "gates"], ["logits", *made]),
        store,
    )
    return {"reader": graph}, store
