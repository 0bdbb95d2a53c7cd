"""Measure the translators by sentence length: python -m recipes by-length --data DIR.

The test split is mostly short. Here each bin of lengths gets the same number of sentences, those whose hashes come
first, and each score an interval; beside them the sentence that the Bahdanau chapter opens on, chosen by rule.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from recipes.alignments import sentence_errors
from recipes.evaluation import translate_all
from recipes.files import write_json
from recipes.sentence_pairs import LICENCE, SOURCE, group_references, load_pairs, split_pairs
from viz_core.pretrained import MAX_SOURCE_TOKENS, Translator, load_translator
from viz_core.pretrained.bleu import bleu_of, bleu_statistics, sentence_bleu
from viz_core.pretrained.bootstrap import paired_bootstrap
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.samples import BY_LENGTH

ATTENTION, PLAIN = "bahdanau-en-fr", "seq2seq-en-fr"
MODELS = (PLAIN, ATTENTION, "transformer-en-fr")
EDGES = (5, 8, 11, 14, 17)  # source tokens, the end of the sentence among them; the last bin is open
PER_BIN = 60
LOST = 20.0  # BLEU of a sentence, 0 to 100

Texts = Mapping[str, Sequence[str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes by-length", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--out", type=Path, default=BY_LENGTH, help="the file to write")
    chosen = parser.parse_args(arguments)
    try:
        translators = {name: load_translator(name) for name in MODELS}
        write_json(chosen.out, measure(translators, group_references(split_pairs(load_pairs(chosen.data)).test)))
    except (ValueError, OSError) as error:
        print(f"cannot measure by length: {error}", file=sys.stderr)
        return 1
    return 0


def measure(translators: Mapping[str, Translator], references: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Scores on the balanced set, by bin and over all of it, and the sentence to open on."""
    english = list(references)
    lengths = dict(zip(english, count_tokens(translators[PLAIN], english), strict=True))  # one tokenizer for all
    english = [sentence for sentence in english if lengths[sentence] <= MAX_SOURCE_TOKENS]
    bins = balanced(english, lengths, EDGES, PER_BIN)
    picked = [sentence for sentences in bins for sentence in sentences]
    texts = {name: _translate(each, english if name != MODELS[-1] else picked) for name, each in translators.items()}
    opening = opening_sentence(texts[ATTENTION], texts[PLAIN], references, sentence_errors(translators[ATTENTION]))
    return {
        "source": SOURCE,
        "licence": LICENCE,
        "bins": [
            {
                "from": min(lengths[sentence] for sentence in sentences),
                "to": max(lengths[sentence] for sentence in sentences),
                **scores(texts, sentences, references),
            }
            for sentences in bins
        ],
        "balanced": scores(texts, picked, references),
        "opening": {"english": opening, "references": list(references[opening])},
    }


def count_tokens(translator: Translator, sentences: Sequence[str]) -> list[int]:
    """Source tokens of each sentence, its end among them, as `bleu_by_length` counts them."""
    return [len(each.ids) + 1 for each in translator.tokenizer.encode_batch(list(sentences))]


def balanced(
    sentences: Sequence[str], lengths: Mapping[str, int], edges: Sequence[int], per_bin: int
) -> list[list[str]]:
    """Return equally many sentences in each bin [edge, next edge), those with the smallest hashes.

    Raises:
        ValueError: if a bin has fewer than that.
    """
    hashed = sorted(sentences, key=lambda sentence: hashlib.sha256(sentence.encode()).digest())
    found = []
    for low, high in zip(edges, [*edges[1:], max(lengths.values()) + 1], strict=True):
        inside = [sentence for sentence in hashed if low <= lengths[sentence] < high]
        if len(inside) < per_bin:
            raise ValueError(f"per_bin: expected at most {len(inside)} for {low} to {high - 1} tokens, got {per_bin}")
        found.append(inside[:per_bin])
    return found


def scores(
    texts: Mapping[str, Texts], sentences: Sequence[str], references: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """BLEU of each model with its interval, and what attention adds to the plain model, both on the same draws."""
    wanted = [references[sentence] for sentence in sentences]
    statistics = {
        name: bleu_statistics([found[sentence] for sentence in sentences], wanted) for name, found in texts.items()
    }
    return {
        "sentences": len(sentences),
        "bleu": {name: _interval(np.zeros_like(each), each) for name, each in statistics.items()},
        "difference": _interval(statistics[PLAIN], statistics[ATTENTION]),
    }


def opening_sentence(
    attention: Mapping[str, str],
    plain: Mapping[str, str],
    references: Mapping[str, Sequence[str]],
    errors: Mapping[str, tuple[float, float]],
) -> str:
    """Return the sentence that attention translates exactly as a reference and aligns best, and the plain model loses.

    A failure is a sentence BLEU below `LOST`. Ties go to alphabetical order.

    Args:
        errors: alignment error rates of hand-aligned sentences, by attention and by place alone; only a sentence that
            attention aligns better is chosen.

    Raises:
        ValueError: if there is none.
    """
    found = [
        (own, sentence)
        for sentence, (own, by_place) in errors.items()
        if own < by_place
        and attention.get(sentence) in references.get(sentence, ())
        and sentence_bleu(plain[sentence], references[sentence]) < LOST
    ]
    if not found:
        raise ValueError("expected a sentence that only the model with attention gets right and aligns, got none")
    return min(found)[1]


def _translate(translator: Translator, sentences: Sequence[str]) -> dict[str, str]:
    print(f"{translator.card.name}: {len(sentences):,} sentences", flush=True)
    texts = translate_all(translator.model, translator.tokenizer, sentences, greedy_search, translator.device)
    return dict(zip(sentences, texts, strict=True))


def _interval(base: Float[np.ndarray, "n k"], other: Float[np.ndarray, "n k"]) -> list[float]:
    """Value and 95% interval."""
    return [round(number, 2) for number in paired_bootstrap(bleu_of, base, other)]
