"""BLEU scores, and confidence intervals of their differences by the paired bootstrap."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from viz_core.pretrained.tokenization import book_tokens


def _sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError:
        raise ImportError("expected sacrebleu, for BLEU: pip install 'attention-atlas[bleu]'") from None
    return sacrebleu


def book_bleu(prediction: Sequence[str], reference: Sequence[str], k: int = 2) -> float:
    """exp(min(0, 1 - len_reference / len_prediction)) prod_(n=1..k) p_n^(1/2^n), 0 to 1.

    p_n is the precision of n-grams, each reference n-gram matched once (Dive into Deep Learning,
    section "Evaluation of Predicted Sequences"). A prediction shorter than k is judged by the n-grams it has,
    an empty one gets 0.

    Args:
        prediction, reference: tokens; how a sentence is cut into them decides the score (the book: `book_tokens`).

    Raises:
        ValueError: if k < 1, the reference is empty, or a text was given where tokens are wanted.
    """
    if k < 1:
        raise ValueError(f"k: expected at least 1, got {k}")
    for name, tokens in (("prediction", prediction), ("reference", reference)):
        if isinstance(tokens, str):
            raise ValueError(f"{name}: expected a list of tokens, got the text {tokens[:40]!r}; split it first")
    if not reference:
        raise ValueError("reference: expected at least one token, got none")
    if not prediction:
        return 0.0
    score = math.exp(min(0.0, 1 - len(reference) / len(prediction)))
    for n in range(1, min(k, len(prediction)) + 1):
        wanted, found = _ngrams(reference, n), _ngrams(prediction, n)
        precision = sum((wanted & found).values()) / (len(prediction) - n + 1)
        score *= precision ** (0.5**n)
    return score


def book_sentence_bleu(prediction: str, references: Sequence[str]) -> float:
    """The book's BLEU with k = 2 of a text cut as the book cuts its own, against the nearest reference: 0 to 1.

    Raises:
        ValueError: if there is no reference, one is blank, or one text was given where a list of them is wanted.
    """
    _check_texts("prediction", [prediction])
    _check_texts("references", references)
    return max(book_bleu(book_tokens(prediction), book_tokens(reference)) for reference in references)


def sentence_bleu(prediction: str, references: Sequence[str]) -> float:
    """sacrebleu's sentence BLEU, 0 to 100 (13a tokens, exponential smoothing, effective order; Post 2018).

    Raises:
        ValueError: if there is no reference, or one text was given where a list of them is wanted.
    """
    _check_texts("prediction", [prediction])
    _check_texts("references", references)
    return float(_sacrebleu().sentence_bleu(prediction, list(references)).score)


def corpus_bleu(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """sacrebleu's corpus BLEU, 0 to 100 (13a tokens, exponential smoothing), all references of each sentence.

    (Post 2018; Papineni 2002.)

    Raises:
        ValueError: if there is not one list of references for each prediction, one of them is empty, or a text was
            given where a list of them is wanted.
    """
    return bleu_of(bleu_statistics(predictions, references).sum(axis=0))


def bleu_statistics(
    predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> Float[np.ndarray, "sentences 10"]:
    """Return the statistics of each sentence: n-grams matched and in total, n = 1 to 4, and both lengths.

    Their sum over any sentences gives those sentences' `bleu_of`. ValueError as `corpus_bleu`.
    """
    _check_texts("predictions", predictions)
    if len(predictions) != len(references):
        raise ValueError(f"expected references for {len(predictions)} predictions, got {len(references)} lists")
    for number, texts in enumerate(references):
        _check_texts(f"references of sentence {number}", texts)
    metric = _sacrebleu().metrics.BLEU(effective_order=True)
    scores = [metric.sentence_score(text, list(them)) for text, them in zip(predictions, references, strict=True)]
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores], dtype=np.float64)


def bleu_of(sums: Float[np.ndarray, "10"]) -> float:
    """sacrebleu's corpus BLEU, 0 to 100, from `bleu_statistics` added up; the same as `corpus_bleu`."""
    counts = [int(number) for number in sums]
    score = _sacrebleu().metrics.BLEU.compute_bleu(counts[:4], counts[4:8], counts[8], counts[9], smooth_method="exp")
    return float(score.score)


def _check_texts(name: str, texts: Sequence[str]) -> None:
    """A str is a sequence of its characters, so that nothing else would notice."""
    if isinstance(texts, str):
        raise ValueError(f"{name}: expected a list of texts, got the text {texts[:40]!r}")
    if not texts:
        raise ValueError(f"{name}: expected at least one text, got none")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name}: expected texts, got {', '.join(sorted({type(text).__name__ for text in texts}))}")


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


class Difference(NamedTuple):
    """The difference of a score from the base score, with its 95% interval."""

    value: float
    low: float
    high: float


def paired_bootstrap(
    score: Callable[[Float[np.ndarray, " k"]], float],
    base: Float[np.ndarray, "examples k"],
    other: Float[np.ndarray, "examples k"],
    rounds: int = 1000,
    seed: int = 0,
) -> Difference:
    """score(sum of other) - score(sum of base), with the interval from resampled examples (Koehn 2004, section 4).

    Each round draws as many examples as there are, with replacement, and scores both on the same draw, by `bleu_of` or
    `percentage_right` of their statistics. ValueError if the two do not hold the same examples, or there is none.
    """
    if base.shape != other.shape or not len(base):
        raise ValueError(f"expected statistics of the same examples, got shapes {base.shape} and {other.shape}")
    draw, n = np.random.default_rng(seed), len(base)
    times = draw.multinomial(n, np.full(n, 1 / n), size=rounds).astype(np.float64)  # how often each is drawn
    pairs = zip(times @ other, times @ base, strict=True)
    low, high = np.percentile([score(one) - score(two) for one, two in pairs], [2.5, 97.5])
    return Difference(score(other.sum(axis=0)) - score(base.sum(axis=0)), float(low), float(high))


def percentage_right(sums: Float[np.ndarray, "2"]) -> float:
    """100 times the right ones over all: of statistics that are 1 or 0, and 1, for each example."""
    return float(100 * sums[0] / sums[1])
