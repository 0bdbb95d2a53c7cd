"""Pictures of bars, which a very small ViT learns in seconds."""

from __future__ import annotations

import torch

from recipes.classification import ClassifierConfig, Views
from recipes.picture_sets import Pictures

CPU = torch.device("cpu")
NAME = "vit-fashion-mnist"
SMALL = {
    "architecture": "vit",
    "img_size": 8,
    "patch_size": 2,
    "num_hiddens": 24,
    "mlp_num_hiddens": 32,
    "num_heads": 2,
    "num_blks": 2,
    "emb_dropout": 0.0,
    "blk_dropout": 0.0,
    "num_classes": 10,
    "num_channels": 1,
}
CONFIG = ClassifierConfig(
    epochs=8,
    batch_size=40,
    sides=((0.0, 6), (0.5, 8)),
    views=Views(shift=0.05, zoom=0.05, turn=3, mirror=False),
    adam_lr=1e-2,
    label_smoothing=0.02,
    average=0.9,
    held_out=60,
)


def bars(count: int, seed: int) -> Pictures:
    """A bright bar on black: lying for labels 0 to 4, standing for 5 to 9, in one of five places."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    pixels = torch.randint(0, 40, (count, 1, 8, 8), generator=generator, dtype=torch.uint8)
    for i, label in enumerate(labels.tolist()):
        place = 1 + label % 5
        bar = (slice(place, place + 2), slice(0, 8))
        pixels[(i, 0, *(bar if label < 5 else bar[::-1]))] += 180
    return Pictures(pixels, labels)
