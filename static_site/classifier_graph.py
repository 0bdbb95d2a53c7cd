"""A shipped vision transformer as an ONNX graph that also returns queries and keys of every layer.

classifier    pixels (1, channels, height, width), gates -> logits, and queries and keys of each layer
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from static_site.onnx_files import WeightStore, export_graph
from static_site.translator_graphs import gated, projections
from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.models.vit import ViT, ViTBlock


class ClassifierGraph(nn.Module):
    """A ViT with a gate on the output of each head."""

    def __init__(self, model: ViT) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor, gates: Tensor) -> tuple[Tensor, ...]:
        """Return logits (1, classes), then queries and keys (1, heads, tokens, d) of each layer.

        Args:
            gates: (layers, heads): 1 leaves a head, 0 switches it off.
        """
        layers = attention_layers(self.model)
        with gated(layers, gates), projections(layers) as found:
            logits = self.model(pixels)
        return (logits, *(tensor for layer in layers for tensor in found[layer]))


def attention_layers(model: ViT) -> list[MultiHeadAttention]:
    """The attention of each block."""
    return [block.attention for block in model.blks if isinstance(block, ViTBlock)]


def export_classifier(model: ViT) -> tuple[dict[str, bytes], WeightStore]:
    """Return the graph "classifier" of a ViT and its weights."""
    layers, heads = len(model.blks), attention_layers(model)[0].num_heads
    store = WeightStore(dict(model.named_parameters()))
    channels = model.patch_embedding.conv.in_channels
    made = [f"encoder.{i}.{part}" for i in range(layers) for part in ("queries", "keys")]
    graph = export_graph(
        ClassifierGraph(model),
        (torch.randn(1, channels, *model.patch_embedding.img_size), torch.ones(layers, heads)),
        (None, None),
        (["pixels", "gates"], ["logits", *made]),
        store,
    )
    return {"classifier": graph}, store
