"""A controlled comparison of GRUs with and without attention: python -m recipes alike --data DIR --out DIR.

The translators that ship had other numbers of updates. Here nothing differs but attention: one vocabulary, the same
batches in the same order, as many updates, from three seeds each, scored on test sentences of which every length has
as many. Smaller than those that ship, so that six of them learn all they can in two hours of one core. What is cut off
goes on when it is called again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from recipes.by_length import EDGES, PER_BIN, balanced
from recipes.evaluation import translate_all
from recipes.files import write_json
from recipes.loop import RunOptions
from recipes.sentence_pairs import LICENCE, SOURCE, Split, group_references, load_pairs, split_pairs
from recipes.translation import TranslationConfig, train_translation
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained import build_translation_model
from viz_core.pretrained.bleu import bleu_of, bleu_statistics
from viz_core.pretrained.bootstrap import paired_bootstrap
from viz_core.pretrained.decoding import greedy_search
from viz_core.runtime.assets import ASSETS
from viz_core.runtime.device import best_device, describe_device

MODELS = {"plain": "seq2seq", "attention": "seq2seq-attention"}  # what we call them, their architecture
SIZES = {"embed_size": 128, "num_hiddens": 128, "num_layers": 1, "dropout": 0.1, "embed_scale": 128**0.5}
CONFIG = TranslationConfig(
    epochs=8, vocab_size=4000, batch_tokens=2048, muon_lr=None, adam_lr=2e-3, curve_sentences=100, patience=8
)
SEEDS = (0, 1, 2)
FILE = ASSETS / "book" / "alike.json"

Statistics = Float[np.ndarray, "sentences counts"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes alike", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--file", type=Path, default=FILE, help="the file to write")
    chosen = parser.parse_args(arguments)
    try:
        write_json(chosen.file, measure(split_pairs(load_pairs(chosen.data)), chosen.out, CONFIG, SEEDS, best_device()))
    except (ValueError, OSError) as error:
        print(f"cannot compare the translators: {error}", file=sys.stderr)
        return 1
    return 0


def measure(
    split: Split,
    out: Path,
    config: TranslationConfig,
    seeds: Sequence[int],
    device: torch.device,
    edges: Sequence[int] = EDGES,
    per_bin: int = PER_BIN,
) -> dict[str, Any]:
    """Both models from every seed: curves, and scores by length with what attention adds.

    Raises:
        ValueError: if a bin of lengths has too few test sentences.
    """
    references = group_references(split.test)
    english = list(references)
    texts: dict[str, list[dict[str, str]]] = {name: [] for name in MODELS}
    curves: dict[str, list[list[float]]] = {name: [] for name in MODELS}
    updates, parameters, lengths = set(), {}, {}
    for seed in seeds:  # both models of a seed, then the next: what there is so far is always a fair comparison
        for name, architecture in MODELS.items():
            print(f"{name}, seed {seed}", flush=True)
            folder = out / f"{name}-{seed}"
            build = partial(_build, architecture)
            run = RunOptions(folder, device, resume=(folder / "last.pt").exists())
            own = replace(config, seed=seed)
            model, tokenizer, state = train_translation(build, split, own, run)
            found = translate_all(model, tokenizer, english, greedy_search, device)
            texts[name].append(dict(zip(english, found, strict=True)))
            curves[name].append([point["validation_loss"] for point in state.curve])
            parameters[name] = sum(parameter.numel() for parameter in model.parameters())
            lengths = {
                text: len(each.ids) + 1 for text, each in zip(english, tokenizer.encode_batch(english), strict=True)
            }
            updates.add(state.updates)
    if len(updates) > 1:
        raise ValueError(f"expected as many updates of each model, got {sorted(updates)}")
    bins = balanced(list(references), lengths, edges, per_bin)
    return {
        "source": SOURCE,
        "licence": LICENCE,
        "device": describe_device(device),
        "seeds": list(seeds),
        "updates": updates.pop(),
        "parameters": parameters,
        "recipe": asdict(config) | SIZES,
        "validation_loss": curves,
        "bins": [
            {
                "from": min(lengths[sentence] for sentence in sentences),
                "to": max(lengths[sentence] for sentence in sentences),
                **scores(texts, sentences, references),
            }
            for sentences in bins
        ],
        "balanced": scores(texts, [sentence for sentences in bins for sentence in sentences], references),
        "test": scores(texts, list(references), references),
    }


def _build(architecture: str, vocab_size: int) -> EncoderDecoder:
    return build_translation_model({"architecture": architecture, "vocab_size": vocab_size, **SIZES})


def scores(
    texts: Mapping[str, Sequence[Mapping[str, str]]],
    sentences: Sequence[str],
    references: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """BLEU of every run, and what attention adds: value, low and high of a paired bootstrap over the sentences.

    For what it adds the counts of all seeds are added up, sentence by sentence.
    """
    wanted = [references[sentence] for sentence in sentences]
    counts: dict[str, list[Statistics]] = {
        name: [bleu_statistics([run[sentence] for sentence in sentences], wanted) for run in runs]
        for name, runs in texts.items()
    }
    plain, attention = (np.sum(counts[name], axis=0) for name in MODELS)
    return {
        "sentences": len(sentences),
        "bleu": {name: [round(bleu_of(each.sum(axis=0)), 2) for each in runs] for name, runs in counts.items()},
        "difference": [round(number, 2) for number in paired_bootstrap(bleu_of, plain, attention)],
    }
