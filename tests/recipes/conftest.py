"""Fixtures for the tests of training programs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from tokenizers import Tokenizer

from recipes import loop
from recipes.loop import RunOptions
from recipes.sentence_pairs import Pair, Split
from recipes.translation import TranslationConfig, TranslationState, train_translation
from tests.shape_checks import unchecked
from tests.tiny_models import CORPUS
from viz_core.models import EncoderDecoder
from viz_core.pretrained import build_translation_model


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    """32 short sentences with a French translation each."""
    return [Pair(*pair) for pair in CORPUS]


@pytest.fixture(autouse=True, scope="package")
def on_the_cpu() -> Iterator[None]:
    """The same device on every machine, and how this process manages memory is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_DEVICE", "cpu")
        patch.setattr(loop, "reuse_freed_memory", lambda: None)
        yield


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with 200 sentence pairs, 7 of which fall to validation and 5 to test."""
    folder = tmp_path / "data"
    folder.mkdir()
    lines = [f"I have {n} cats.\tJ'ai {n} chats.\tCC-BY" for n in range(200)]
    (folder / "fra.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


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
