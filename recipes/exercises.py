"""Small runs that answer exercises of the book: python -m recipes exercises --data DIR.

A deeper Transformer on the book's 512 sentence pairs (11.7, 1); and a small Vision Transformer on the test pictures
that ship, at several sizes of the picture (11.8, 1), with the average of its patches in place of the class token
(11.8, 2), and with one setting changed at a time (11.8, 3). Seconds are of one processor core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recipes.book_fit import fit
from recipes.book_pairs import prepare
from recipes.book_translators import BOOK_TRANSLATORS, train_once
from recipes.files import write_json
from recipes.sentence_pairs import read_text
from viz_core.images.fashion_mnist import shipped_pictures
from viz_core.models.vit import ViT
from viz_core.runtime.assets import ASSETS

RECORDED = ASSETS / "book" / "exercises.json"
DEPTHS = (1, 2, 4)
SEEDS = (0, 1, 2)
TRANSLATOR = {"num_hiddens": 64, "ffn_num_hiddens": 64, "num_heads": 4, "dropout": 0.2}
VIT: dict[str, Any] = {
    "img_size": 28,
    "patch_size": 7,
    "num_hiddens": 32,
    "mlp_num_hiddens": 64,
    "num_heads": 4,
    "num_blks": 2,
    "emb_dropout": 0.1,
    "blk_dropout": 0.1,
}
CHANGES: dict[str, dict[str, Any]] = {
    "as-it-is": {},
    "average": {},  # of patches, in place of the class token
    "larger-patches": {"patch_size": 14},
    "smaller-patches": {"patch_size": 4},
    "deeper": {"num_blks": 4},
    "plain-descent": {},  # the book's optimiser and rate, in place of Adam
}
SIDES = (14, 28, 56, 112)
TESTED = 300  # of the 1,000 pictures; the others are trained on
PICTURE_EPOCHS = 15


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes exercises", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--out", type=Path, default=RECORDED, help="the file to write")
    parser.add_argument("--epochs", type=int, help="passes over the data, for a first look")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        write_json(chosen.out, measure(read_text(chosen.data), chosen.epochs))
    except (ValueError, OSError) as error:
        print(f"cannot answer the exercises: {error}", file=sys.stderr)
        return 1
    return 0


def measure(text: str, epochs: int | None = None, seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """Every run once with each seed.

    Args:
        text: of fra.txt.
        epochs: instead of those that each run has.
    """
    return {
        "deeper": {str(depth): [_translator(text, depth, seed, epochs) for seed in seeds] for depth in DEPTHS},
        "seconds": {str(side): _seconds(side) for side in SIDES},
        "right": {name: [_right(name, seed, epochs or PICTURE_EPOCHS) for seed in seeds] for name in CHANGES},
    }


def _translator(text: str, depth: int, seed: int, epochs: int | None) -> dict[str, float]:
    """Losses at the end in nats a token, and seconds for an epoch, with so many blocks on each side."""
    spec = replace(BOOK_TRANSLATORS["book-transformer"], sizes={**TRANSLATOR, "num_blks": depth})
    epochs = epochs or spec.epochs
    begun = time.process_time()
    curve = train_once(spec, prepare(text), seed, epochs, torch.device("cpu"))[1]
    seconds = (time.process_time() - begun) / epochs
    return {**{name: curve[-1][name] for name in ("train_loss", "validation_loss")}, "seconds": round(seconds, 3)}


def _right(name: str, seed: int, epochs: int) -> float:
    """The share of held-out pictures that a ViT with this change names rightly; the seed splits them too."""
    torch.manual_seed(seed)
    pictures, numbers = shipped_pictures()
    order = torch.randperm(len(numbers))
    pixels, labels = (pictures[order].float() / 255 - 0.286) / 0.353, torch.tensor(numbers)[order]
    model = ViT(**VIT | CHANGES[name], num_channels=1)
    plain = name == "plain-descent"
    optimizer = (torch.optim.SGD if plain else torch.optim.Adam)(model.parameters(), lr=0.1 if plain else 3e-3)

    def loss(rows: Int[Tensor, " rows"]) -> Float[Tensor, ""]:
        at = rows + TESTED
        return F.cross_entropy(answer(model, pixels[at], average=name == "average"), labels[at])

    def right() -> dict[str, float]:
        predicted = answer(model, pixels[:TESTED], average=name == "average").argmax(dim=-1)
        return {"right": float((predicted == labels[:TESTED]).float().mean())}

    return fit(model, optimizer, len(labels) - TESTED, loss, right, epochs)[-1]["right"]


def answer(
    model: ViT, X: Float[Tensor, "batch channels height width"], *, average: bool
) -> Float[Tensor, "batch classes"]:
    """Logits read from the class token, or from the mean of the patches."""
    if not average:
        return model(X)
    return model.head(model.tokens(X)[:, 1:].mean(dim=1))


def _seconds(side: int, count: int = 5) -> float:
    """Of one update on 16 pictures of this side."""
    model = ViT(**VIT | {"img_size": side}, num_channels=1)
    X, labels = torch.randn(16, 1, side, side), torch.zeros(16, dtype=torch.long)
    found = [_update(model, X, labels) for _ in range(count + 1)]
    return round(median(found[1:]), 5)


def _update(model: nn.Module, X: Tensor, labels: Tensor) -> float:
    begun = time.process_time()
    F.cross_entropy(model(X), labels).backward()
    return time.process_time() - begun
