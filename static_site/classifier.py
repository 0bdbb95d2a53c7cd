"""The page of the shipped vision transformers, and their ONNX graphs, which also return queries and keys.

classifier    pixels (1, channels, height, width), gates -> logits, and queries and keys of each layer
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from static_site.files import SiteFiles
from static_site.model_files import WeightStore, export_graph
from static_site.model_pages import add_model, common_data
from static_site.pages import Words, plain_text
from static_site.translator import gated, outputs, projections
from ui.text.words import load_words
from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.images.drawn import FOLDER, GARMENTS, SCENES
from viz_core.images.open_image import MAX_BYTES, MAX_PIXELS
from viz_core.models.vit import ViT, ViTBlock
from viz_core.pretrained import ImageClassifier, load
from viz_core.trace import Trace
from viz_core.view.components import group_labels


class ClassifierGraph(nn.Module):
    """A ViT with a gate on the output of each head."""

    def __init__(self, model: ViT) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor, gates: Tensor) -> dict[str, Tensor]:
        """Return logits (1, classes), and queries and keys (1, heads, tokens, d) of each layer.

        Args:
            gates: (layers, heads): 1 leaves a head, 0 switches it off.
        """
        layers = attention_layers(self.model)
        modules = [projections(f"encoder.{i}.self", layer, "keys") for i, layer in enumerate(layers)]
        with (
            gated([layer.W_o for layer in layers], gates),
            outputs(dict(ChainMap(*modules)), layers[0].head_dim) as found,
        ):
            logits = self.model(pixels)
        return {"logits": logits, **found}


def attention_layers(model: ViT) -> list[MultiHeadAttention]:
    """The attention of each block."""
    return [block.attention for block in model.blks if isinstance(block, ViTBlock)]


def export_classifier(model: ViT) -> tuple[dict[str, bytes], WeightStore]:
    """Return the graph "classifier" of a ViT and its weights."""
    layers, heads = len(model.blks), attention_layers(model)[0].num_heads
    store = WeightStore()
    channels = model.patch_embedding.conv.in_channels
    graph = export_graph(
        ClassifierGraph(model),
        (torch.randn(1, channels, *model.patch_embedding.img_size), torch.ones(layers, heads)),
        (None, None),
        ["pixels", "gates"],
        store,
    )
    return {"classifier": graph}, store


NAME = "vision-transformer"
SAMPLES = {"vit-fashion-mnist": GARMENTS, "vit-cifar10": SCENES}
FIRST = {"vit-fashion-mnist": GARMENTS[0], "vit-cifar10": "truck"}
SOURCES = ("sample", "upload", "draw")
GROUP = "encoder-self"
PROBLEMS = {
    "unreadable": "This file is not a picture that can be read. Only {formats} pictures can be opened.",
    "too-heavy": "This file has {size:.1f} MB; a picture may have at most {most:g}.",
    "too-large": "This picture has {width:,} x {height:,} pixels: more than the {most:g} megapixels that can be "
    "opened. Make it smaller and try again.",
}
_DRAWING = ("paper", "size", "shade", "dark", "middle", "light", "rub", "undo", "clear", "hint", "down", "up")


def load_model() -> dict[str, ImageClassifier]:
    """Both classifiers on the CPU, by name."""
    models = {name: load(name, device="cpu") for name in SAMPLES}
    return {name: model for name, model in models.items() if isinstance(model, ImageClassifier)}


def add_files(files: SiteFiles, models: dict[str, ImageClassifier]) -> dict[str, Any]:
    """Add graphs and weights of both, and the sample pictures."""
    described = {}
    for name, model in models.items():
        pictures = {each: (FOLDER / f"{each}.png").read_bytes() for each in SAMPLES[name]}
        described[name] = add_model(files, name, *export_classifier(model.model)) | {
            "pictures": {each: files.add(f"pictures/{each}.png", content) for each, content in pictures.items()}
        }
    return described


def page(words: Words) -> dict[str, Any]:
    """The classifiers' parts of the page."""

    def named(names: Iterable[str]) -> dict[str, str]:
        return {name: words.of(NAME, f"option.{name}") for name in names}

    options = {"model": named(SAMPLES), "source": named(SOURCES), "sample": {}}
    selects = {name: (words.label(NAME, name), each) for name, each in options.items()}
    own = {"name": NAME, "chapter": NAME, "title": words.title(NAME)}
    return own | {"selects": selects, "upload": words.label(NAME, "upload")}


def recorded(_words: Words, models: dict[str, ImageClassifier]) -> tuple[dict[str, Any], Trace]:
    """The classification of the first sample, as `classify` of classifier.js returns it."""
    name, model = next(iter(models.items()))
    found = model.classify(Image.open(FOLDER / f"{FIRST[name]}.png"))
    probabilities = [found.probabilities[label] for label in model.labels]
    return {"probabilities": probabilities, "seen": np.asarray(found.prepared.seen.convert("RGB"))}, found.trace


def data(words: Words, models: dict[str, ImageClassifier], files: dict[str, Any]) -> dict[str, Any]:
    """What the script of the page reads."""
    common = load_words("common", words.language).sections
    named = {name: common.get(f"class.{name}", name) for name in (*GARMENTS, *SCENES)}
    first = attention_layers(next(iter(models.values())).model)
    layers, heads = len(first), first[0].num_heads
    return common_data(words, PROBLEMS, (NAME, "answer"), (NAME, "seen"), (NAME, "brought")) | {
        "labels": {GROUP: words.of(NAME, "view.self")} | group_labels(NAME, words.language),
        "drawing": {name: plain_text(words.of(NAME, f"draw.{name}")) for name in _DRAWING},
        "start": {name: files[name] for name in ("runtime", "empty")},
        "models": {
            name: _described(model, files[name], common)
            | {"samples": {each: named[each] for each in SAMPLES[name]}, "first": FIRST[name]}
            for name, model in models.items()
        },
        "limits": {"bytes": MAX_BYTES, "pixels": MAX_PIXELS},
        "heads": [f"{GROUP}.{layer}.{head}" for layer in range(layers) for head in range(heads)],
        "open": "",  # the head whose pattern is clearest, as in the app
    }


def _described(model: ImageClassifier, files: dict[str, Any], common: dict[str, str]) -> dict[str, Any]:
    attention, patches = attention_layers(model.model), model.model.patch_embedding
    height, width = patches.img_size
    return {
        "files": files,
        "revision": model.card.revision,
        "labels": [common.get(f"class.{label}", label) for label in model.labels],
        "sizes": {
            "layers": len(attention),
            "heads": attention[0].num_heads,
            "size": attention[0].head_dim,
            "grid": [height // patches.patch_size[0], width // patches.patch_size[1]],
        },
        "pixels": model.preparation.config() | {"height": height, "width": width},
    }
