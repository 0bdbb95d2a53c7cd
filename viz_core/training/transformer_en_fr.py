"""The shipped translator: the book's Transformer, English to French, larger than the book's toy."""

from __future__ import annotations

from pathlib import Path

import torch

from viz_core.pretrained import build_translation_model
from viz_core.training.export import export_translator
from viz_core.training.sentence_pairs import load_pairs, split_pairs
from viz_core.training.translation import Recipe, train_translation

ARCHITECTURE = {
    "num_hiddens": 256,
    "ffn_num_hiddens": 1024,
    "num_heads": 8,
    "num_blks": 3,
    "dropout": 0.15,
}


def train(data: Path, out: Path, device: torch.device, minutes: float | None, epochs: int | None, resume: bool) -> None:
    """Train, evaluate on the test split and write the checkpoint with its card into `out`."""
    recipe = Recipe() if epochs is None else Recipe(epochs=epochs)
    split = split_pairs(load_pairs(data))
    model, tokenizer, state = train_translation(
        lambda vocab_size: build_translation_model({"vocab_size": vocab_size, **ARCHITECTURE}),
        split,
        out,
        recipe,
        device,
        minutes,
        resume,
    )
    config = {"vocab_size": tokenizer.get_vocab_size(), **ARCHITECTURE}
    export_translator(
        "transformer-en-fr",
        "Transformer, English to French",
        config,
        model,
        tokenizer,
        split,
        state,
        recipe,
        out,
        device,
    )
