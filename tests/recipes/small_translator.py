"""A very small translator, trained on a few pairs in seconds."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

from recipes.loop import RunOptions
from recipes.sentence_pairs import Pair, Split
from recipes.translation import TranslationConfig, TranslationState, train_translation
from tests.shape_checks import unchecked
from viz_core.models import EncoderDecoder
from viz_core.pretrained import build_translation_model

CPU = torch.device("cpu")
CONFIG = TranslationConfig(
    vocab_size=300,
    epochs=30,
    batch_tokens=256,
    muon_lr=1e-2,
    adam_lr=5e-3,
    warm_up=0.1,
    decay_from=0.5,
    label_smoothing=0.05,
    curve_sentences=2,
    patience=1000,
)
SHORT = replace(CONFIG, epochs=3)


def build(vocab_size: int) -> EncoderDecoder:
    sizes = {
        "architecture": "transformer",
        "num_hiddens": 48,
        "ffn_num_hiddens": 96,
        "num_heads": 4,
        "num_blks": 2,
        "dropout": 0.0,
    }
    return build_translation_model({"vocab_size": vocab_size, **sizes})


class Trained(NamedTuple):
    model: EncoderDecoder
    tokenizer: Tokenizer
    state: TranslationState
    out: Path


def train(
    pairs: list[Pair], out: Path, config: TranslationConfig, minutes: float | None = None, resume: bool = False
) -> Trained:
    """Train without shape checks; `test_main.py` trains the same models with them."""
    split = Split(pairs, pairs, [])
    with unchecked():
        return Trained(*train_translation(build, split, config, RunOptions(out, CPU, minutes, resume)), out)
