"""The book's Vision Transformer, trained as it prints it: Fashion-MNIST at 96 x 96 pixels, plain gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor, nn

from recipes.book_card import picture_card
from recipes.book_fit import BATCH_SIZE, fit
from recipes.files import write_json
from recipes.picture_sets import Pictures, PictureSplit, load_fashion_mnist
from viz_core.models.vit import ViT

SIZES: dict[str, Any] = {
    "img_size": 96,
    "patch_size": 16,
    "num_hiddens": 512,
    "mlp_num_hiddens": 2048,
    "num_heads": 8,
    "num_blks": 2,
    "emb_dropout": 0.1,
    "blk_dropout": 0.1,
}
LEARNING_RATE = 0.1  # of stochastic gradient descent without momentum
EPOCHS = 10


def train(
    data: Path,
    out: Path,
    device: torch.device,
    epochs: int | None = None,
    seeds: Sequence[int] = (0,),
    limit: int | None = None,
) -> None:
    """Train the book's ViT once with each seed; weights, curves and card go into `out`.

    An epoch of all 60,000 pictures is a matter of seconds on a GPU and of half an hour on a few processor cores.

    Args:
        epochs: instead of the book's 10.
        limit: pictures to train on, and as many to test, instead of all.

    Raises:
        ValueError: if epochs or limit is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit: expected at least 1 picture, got {limit}")
    epochs = EPOCHS if epochs is None else epochs
    split = PictureSplit(*(Pictures(*(x[:limit] for x in part)) for part in load_fashion_mnist(data)))
    out.mkdir(parents=True, exist_ok=True)
    runs = []
    for seed in seeds:
        model, curve = train_once(split, seed, epochs, device)
        save_file(model.state_dict(), out / f"seed-{seed}.safetensors")
        runs.append({"seed": seed, "curve": curve})
    record = {
        "settings": {**SIZES, "lr": LEARNING_RATE, "batch_size": BATCH_SIZE, "epochs": epochs},
        "pictures": [len(part.labels) for part in split],
        "runs": runs,
    }
    write_json(out / "training.json", record)
    (out / "card.md").write_text(picture_card(record), encoding="utf-8")


def train_once(split: PictureSplit, seed: int, epochs: int, device: torch.device) -> tuple[ViT, list[dict[str, float]]]:
    """A model trained from this seed, and its learning curve, with test loss and accuracy as in the book."""
    torch.manual_seed(seed)
    model = ViT(**SIZES, num_channels=1)
    nn.init.normal_(model.pos_embedding)  # the book draws positions from N(0, 1)
    model = model.to(device)
    training, test = (part.to(device) for part in split)

    def measure() -> dict[str, float]:
        logits = torch.cat([model(enlarge(pixels)) for pixels in test.pixels.split(BATCH_SIZE)])
        right = (logits.argmax(dim=-1) == test.labels).float().mean()
        return {"validation_loss": float(F.cross_entropy(logits, test.labels)), "validation_accuracy": float(right)}

    def loss(rows: Tensor) -> Tensor:
        batch = training.part(rows.to(device))
        return F.cross_entropy(model(enlarge(batch.pixels)), batch.labels)

    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    return model, fit(model, optimizer, len(training.labels), loss, measure, epochs)


def enlarge(pixels: Tensor) -> Float[Tensor, "batch 1 96 96"]:
    """Pixels from 0 to 1, resized bilinearly to what the model takes."""
    return F.interpolate(pixels.float() / 255, size=(SIZES["img_size"],) * 2, mode="bilinear", align_corners=False)
