"""The page of the shipped vision transformers, and their ONNX graphs, which also return queries and keys.

classifier    picture (height, width, 3), gates -> pixels, probabilities, and queries and keys of each layer
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from static_site.files import SiteFiles, add_model
from static_site.model_files import WeightStore, export_graph
from static_site.pages import Words, model_data, plain_text
from static_site.translator import gated, outputs, projections
from viz_core.attention.multi_head import MultiHeadAttention
from viz_core.images.open_image import MAX_BYTES, MAX_PIXELS
from viz_core.models.vit import ViT, ViTBlock
from viz_core.pretrained import ImageClassifier, load
from viz_core.pretrained.samples import GARMENTS, SCENES, drawn_picture
from viz_core.trace import Trace


class ClassifierGraph(nn.Module):
    """A ViT with a gate on the output of each head."""

    def __init__(self, classifier: ImageClassifier) -> None:
        super().__init__()
        self.model, self.preparation = classifier.model, classifier.preparation

    def forward(self, seen: Tensor, gates: Tensor) -> dict[str, Tensor]:
        """Return pixels and probabilities (1, classes), and queries and keys (1, heads, tokens, d) of each layer.

        Args:
            seen: (height, width, 3), the picture in 8 bits.
            gates: (layers, heads): 1 leaves a head, 0 switches it off.
        """
        layers = attention_layers(self.model)
        modules: dict[str, nn.Module] = {}
        for i, layer in enumerate(layers):
            modules |= projections(f"encoder.{i}.self", layer, "keys")
        pixels = self.preparation.normalise(seen.permute(2, 0, 1)[None, : len(self.preparation.mean)])
        gates_on = gated([layer.W_o for layer in layers], gates)
        with gates_on, outputs(modules, layers[0].head_dim) as found:
            probabilities = self.model(pixels).softmax(dim=-1)
        return {"pixels": pixels, "probabilities": probabilities, **found}


def attention_layers(model: ViT) -> list[MultiHeadAttention]:
    """The attention of each block."""
    return [block.attention for block in model.blks if isinstance(block, ViTBlock)]


def export_classifier(classifier: ImageClassifier) -> tuple[dict[str, bytes], WeightStore]:
    """Return the graph "classifier" of a ViT and its weights."""
    layers, store = attention_layers(classifier.model), WeightStore()
    seen = torch.zeros(*classifier.model.patch_embedding.img_size, 3, dtype=torch.uint8)
    gates = torch.ones(len(layers), layers[0].num_heads)
    graph = export_graph(ClassifierGraph(classifier), (seen, gates), (None, None), ["seen", "gates"], store)
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
        pictures = {each: BytesIO() for each in SAMPLES[name]}
        for each, file in pictures.items():
            drawn_picture(each).save(file, "PNG", optimize=True)
        described[name] = add_model(files, name, *export_classifier(model)) | {
            "pictures": {each: files.add(f"pictures/{each}.png", file.getvalue()) for each, file in pictures.items()}
        }
    return described


def page(words: Words) -> dict[str, Any]:
    """The classifiers' parts of the page."""
    own = words(NAME)
    options = {"model": tuple(SAMPLES), "source": SOURCES, "sample": ()}
    selects = {name: (own.label(name), {each: own(f"option.{each}") for each in options[name]}) for name in options}
    return {"name": NAME, "chapter": NAME, "title": own.title, "selects": selects, "upload": own.label("upload")}


def recorded(_words: Words, models: dict[str, ImageClassifier]) -> tuple[dict[str, Any], Trace]:
    """The classification of the first sample, as `classify` of classifier.js returns it."""
    name, model = next(iter(models.items()))
    found = model.classify(drawn_picture(FIRST[name]))
    probabilities = [found.probabilities[label] for label in model.labels]
    return {"probabilities": probabilities, "seen": np.asarray(found.prepared.seen.convert("RGB"))}, found.trace


def data(words: Words, models: dict[str, ImageClassifier]) -> dict[str, Any]:
    """What the script of the page reads."""

    def named(label: str) -> str:
        return words("common").sections.get(f"class.{label}", label)

    layers = attention_layers(next(iter(models.values())).model)
    heads = {GROUP: (len(layers), layers[0].num_heads)}
    made = model_data(words, NAME, heads, PROBLEMS, (NAME, "answer"))
    return made | {
        "labels": {GROUP: words(NAME)("view.self")} | made["labels"],
        "drawing": {name: plain_text(words(NAME)(f"draw.{name}")) for name in _DRAWING},
        "models": {
            name: {
                "revision": model.card.revision,
                "labels": [named(label) for label in model.labels],
                "grid": [side // patch for side, patch in zip(patches.img_size, patches.patch_size, strict=True)],
                "form": model.preparation.form,
                "samples": {each: named(each) for each in SAMPLES[name]},
                "first": FIRST[name],
            }
            for name, model in models.items()
            for patches in [model.model.patch_embedding]
        },
        "limits": {"bytes": MAX_BYTES, "pixels": MAX_PIXELS},
    }
