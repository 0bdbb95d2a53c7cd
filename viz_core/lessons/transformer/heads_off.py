"""A translation beside the one without some heads, and what these are worth on held-out sentences."""

from __future__ import annotations

import math
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.bleu import bleu_statistics
from viz_core.pretrained.samples import held_out
from viz_core.trace import HeadsOff, intervene, switched_off


class Word(NamedTuple):
    """A word of a translation, how likely it was after those before it, and whether the other one has it not."""

    text: str
    probability: float
    changed: bool


def words_beside(one: Translation, other: Translation) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """The words of two translations, each with the product of its pieces' probabilities.

    Those that no longest common subsequence of the two pairs are changed.
    """
    first, second = _words(one), _words(other)
    matcher = SequenceMatcher(None, [text for text, _ in first], [text for text, _ in second], autojunk=False)
    same = [(block.a + i, block.b + i) for block in matcher.get_matching_blocks() for i in range(block.size)]
    kept = [{pair[side] for pair in same} for side in (0, 1)]
    return tuple(
        tuple(Word(text, p, i not in found) for i, (text, p) in enumerate(words))
        for words, found in zip((first, second), kept, strict=True)
    )  # type: ignore[return-value]


def _words(translation: Translation) -> list[tuple[str, float]]:
    found: dict[int, tuple[str, float]] = {}
    pieces = zip(translation.target_words, translation.target_tokens, translation.log_probabilities, strict=True)
    for number, token, log_p in pieces:
        text, p = found.get(number, ("", 1.0))
        found[number] = (text + token, p * math.exp(log_p))
    return list(found.values())


def held_out_statistics(
    translator: Translator, off: HeadsOff, start: int, stop: int
) -> Float[np.ndarray, "sentences 10"]:
    """What BLEU needs of the translations of some held-out sentences, with heads off.

    Raises:
        ValueError: if there is no such head.
    """
    some = held_out()[start:stop]
    with intervene(switched_off(off)):
        texts = translator.translate_texts([sample.english for sample in some])
    return bleu_statistics(texts, [sample.references for sample in some])
