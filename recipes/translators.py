"""The translators that ship, English to French: three architectures, one split, one tokenizer, one loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipes.export import export_translator
from recipes.loop import RunOptions
from recipes.sentence_pairs import load_pairs, split_pairs
from recipes.translation import TranslationConfig, train_translation
from viz_core.pretrained import build_translation_model, load_translator


@dataclass(frozen=True)
class TranslatorSpec:
    """Architecture and training configuration of a translator."""

    title: str
    description: str  # first words of its card
    architecture: dict[str, Any]  # its config without the size of the vocabulary
    config: TranslationConfig


# 16 is the root of 256: the embedding is shared with the output layer and drawn that much smaller.
_GRU = {"embed_size": 256, "num_hiddens": 256, "num_layers": 2, "dropout": 0.1, "embed_scale": 16.0}
# Orthogonal steps are worth their price where products run in bfloat16; a GRU's do not on a CPU.
_GRU_CONFIG = TranslationConfig(batch_tokens=2048, muon_lr=None, adam_lr=2e-3, curve_sentences=300)

TRANSLATORS = {
    "transformer-en-fr": TranslatorSpec(
        "Transformer, English to French",
        "the Transformer of Vaswani et al. (2017), post-norm with sinusoidal positions",
        {
            "architecture": "transformer",
            "num_hiddens": 256,
            "ffn_num_hiddens": 1024,
            "num_heads": 8,
            "num_blks": 3,
            "dropout": 0.15,
        },
        TranslationConfig(byte_fallback=True, vary_pairs=True),
    ),
    "bahdanau-en-fr": TranslatorSpec(
        "GRU with attention, English to French",
        "RNNsearch of Bahdanau, Cho and Bengio (2015), small: a bidirectional GRU encoder, a GRU decoder with\n"
        "additive attention and maxout output; the end mark of the source is not a key",
        {
            "architecture": "rnnsearch",
            "embed_size": 128,
            "num_hiddens": 128,
            "num_layers": 1,
            "dropout": 0.1,
            "embed_scale": 128**0.5,
        },
        replace(_GRU_CONFIG, vocab_size=4000, curve_sentences=100),
    ),
    "seq2seq-en-fr": TranslatorSpec(
        "GRU without attention, English to French",
        "a GRU encoder and decoder joined by one fixed vector, after Cho et al. (2014)",
        {"architecture": "seq2seq", **_GRU},
        _GRU_CONFIG,
    ),
}


def train(name: str, data: Path, run: RunOptions, epochs: int | None) -> None:
    """Train one of TRANSLATORS, evaluate it on the test split and write the checkpoint with its card."""
    spec = TRANSLATORS[name]
    config = spec.config if epochs is None else replace(spec.config, epochs=epochs)
    split = split_pairs(load_pairs(data))
    model, tokenizer, state = train_translation(
        lambda vocab_size: build_translation_model({"vocab_size": vocab_size, **spec.architecture}),
        split,
        config,
        run,
        None if config.start is None or run.resume else load_translator(config.start, run.device),
    )
    export_translator(
        name,
        spec.title,
        spec.description,
        {"vocab_size": tokenizer.get_vocab_size(), **spec.architecture},
        model,
        tokenizer,
        split,
        state,
        config,
        run.out,
        run.device,
    )
