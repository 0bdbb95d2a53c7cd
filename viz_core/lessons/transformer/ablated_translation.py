"""A translation compared with one without some heads, and their effect on held-out sentences."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
from jaxtyping import Float

from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.bleu import bleu_statistics
from viz_core.pretrained.samples import held_out
from viz_core.trace import HeadsOff, intervene, switched_off


def words_changed(one: Translation, other: Translation) -> tuple[frozenset[int], frozenset[int]]:
    """Places of the words of two translations that no longest common subsequence of the two pairs."""
    first, second = ([word.text for word in each.words] for each in (one, other))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    same = [(block.a + i, block.b + i) for block in matcher.get_matching_blocks() for i in range(block.size)]
    unchanged = [{pair[side] for pair in same} for side in (0, 1)]
    return frozenset(range(len(first))) - unchanged[0], frozenset(range(len(second))) - unchanged[1]


def held_out_statistics(
    translator: Translator, off: HeadsOff, start: int, stop: int
) -> Float[np.ndarray, "sentences 10"]:
    """BLEU statistics of the translations of some held-out sentences with heads switched off."""
    some = held_out()[start:stop]
    with intervene(switched_off(off)):
        texts = translator.translate_texts([sample.english for sample in some])
    return bleu_statistics(texts, [sample.references for sample in some])
