"""The classifiers that ship: small vision transformers, one loop, a configuration for two cores and one for a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from recipes.augmentation import Views
from recipes.classification import ClassifierConfig, train_classifier
from recipes.export_classifier import export_classifier
from recipes.loop import RunOptions
from recipes.picture_sets import CIFAR10, FASHION_MNIST, Pictures, PictureSet
from viz_core.images.preprocessing import Preparation
from viz_core.pretrained.classifier import build_classification_model


@dataclass(frozen=True)
class ClassifierSpec:
    """Architecture and training configurations of a classifier."""

    title: str
    description: str  # first words of its card
    data: PictureSet
    architecture: dict[str, Any]
    config: ClassifierConfig  # for a GPU: many passes, strong augmentation
    cpu_config: ClassifierConfig  # for a few cores: few passes, the first at low resolution


# Without dropout: augmentation and the average of weights do its work in models this small.
_VIT = {"architecture": "vit", "patch_size": 4, "num_blks": 6, "emb_dropout": 0.0, "blk_dropout": 0.0, "use_bias": True}
# Where there is time for some twenty passes: larger steps, weights averaged over fewer of them, milder targets.
_FEW_PASSES: dict[str, Any] = {
    "muon_lr": 6e-3,
    "average": 0.99,
    "label_smoothing": 0.05,
    "warm_up": 0.05,
    "decay_from": 0.3,
    "cosine": False,  # a run that --minutes lengthens stays nearer to a line
}

CLASSIFIERS = {
    "vit-fashion-mnist": ClassifierSpec(
        "Vision Transformer, Fashion-MNIST",
        "a small Vision Transformer after Dosovitskiy et al. (2021), pre-norm, 49 patches of 4 x 4 pixels",
        FASHION_MNIST,
        {
            **_VIT,
            "img_size": 28,
            "num_hiddens": 144,
            "mlp_num_hiddens": 432,
            "num_heads": 6,
            "num_classes": 10,
            "num_channels": 1,
        },
        ClassifierConfig(
            epochs=100,
            batch_size=512,
            sides=((0.0, 20), (0.4, 28)),
            views=Views(shift=0.08, zoom=0.12, turn=6.0, cover=0.3),
            mixed=0.3,
        ),
        ClassifierConfig(
            epochs=40,
            batch_size=256,
            sides=((0.0, 16), (0.45, 20), (0.7, 28)),
            views=Views(shift=0.06, zoom=0.08, turn=4.0, cover=0.0),
            **_FEW_PASSES,
        ),
    ),
    "vit-cifar10": ClassifierSpec(
        "Vision Transformer, CIFAR-10",
        "a small Vision Transformer after Dosovitskiy et al. (2021), pre-norm, 64 patches of 4 x 4 pixels",
        CIFAR10,
        {
            **_VIT,
            "img_size": 32,
            "num_hiddens": 144,
            "mlp_num_hiddens": 432,
            "num_heads": 6,
            "num_classes": 10,
            "num_channels": 3,
        },
        ClassifierConfig(
            epochs=200,
            batch_size=512,
            sides=((0.0, 24), (0.4, 32)),
            views=Views(shift=0.12, zoom=0.2, turn=12.0, brightness=0.3, cover=0.35),
            mixed=0.5,
        ),
        ClassifierConfig(
            epochs=40,
            batch_size=256,
            sides=((0.0, 16), (0.45, 24), (0.75, 32)),
            views=Views(shift=0.1, zoom=0.12, turn=4.0, brightness=0.1, cover=0.0),
            **_FEW_PASSES,
        ),
    ),
}


def train(name: str, data: Path, run: RunOptions, epochs: int | None) -> None:
    """Train one of CLASSIFIERS, evaluate it on the test pictures and write the checkpoint with its card."""
    spec = CLASSIFIERS[name]
    config = spec.cpu_config if run.device.type == "cpu" else spec.config
    config = config if epochs is None else replace(config, epochs=epochs)
    split = spec.data.load(data)
    preparation = measure(split.train, spec.data.form)
    build = partial(build_classification_model, spec.architecture)
    model, state = train_classifier(build, split.train, preparation, config, run)
    export_classifier(
        name,
        spec.title,
        spec.description,
        spec.architecture,
        model,
        spec.data,
        split,
        preparation,
        state,
        config,
        run.out,
        run.device,
    )


def measure(pictures: Pictures, form: str) -> Preparation:
    """Mean and deviation of each channel of the training pictures, and the form that visitors' pictures are given."""
    pixels = pictures.pixels.float() / 255
    mean, std = pixels.mean(dim=(0, 2, 3)), pixels.std(dim=(0, 2, 3))
    height, width = pixels.shape[2:]
    return Preparation((height, width), form, [round(m, 4) for m in mean.tolist()], [round(s, 4) for s in std.tolist()])
