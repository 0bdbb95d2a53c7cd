"""How near a translation comes to its references."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import sacrebleu


def book_bleu(prediction: Sequence[str], reference: Sequence[str], k: int = 2) -> float:
    """exp(min(0, 1 - len_reference / len_prediction)) prod_(n=1..k) p_n^(1/2^n), 0 to 1.

    p_n is the precision of n-grams, each reference n-gram matched once (Dive into Deep Learning,
    section "Evaluation of Predicted Sequences"). A prediction shorter than k is judged by the n-grams it has,
    an empty one gets 0.

    Raises:
        ValueError: if k < 1.
    """
    if k < 1:
        raise ValueError(f"k: expected at least 1, got {k}")
    if not prediction:
        return 0.0
    score = math.exp(min(0.0, 1 - len(reference) / len(prediction)))
    for n in range(1, min(k, len(prediction)) + 1):
        wanted, found = _ngrams(reference, n), _ngrams(prediction, n)
        precision = sum((wanted & found).values()) / (len(prediction) - n + 1)
        score *= precision ** (0.5**n)
    return score


def sentence_bleu(prediction: str, references: Sequence[str]) -> float:
    """sacrebleu's sentence BLEU, 0 to 100 (13a tokens, exponential smoothing, effective order)."""
    return float(sacrebleu.sentence_bleu(prediction, list(references)).score)


def corpus_bleu(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """sacrebleu's corpus BLEU, 0 to 100 (13a tokens, exponential smoothing), all references of each sentence.

    Raises:
        ValueError: if there is not one list of references for each prediction.
    """
    if len(predictions) != len(references) or not predictions:
        raise ValueError(f"expected references for {len(predictions)} predictions, got {len(references)} lists")
    most = max(len(r) for r in references)
    columns = [[r[i] if i < len(r) else None for r in references] for i in range(most)]
    return float(sacrebleu.metrics.BLEU().corpus_score(list(predictions), columns).score)


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
