"""Held-out sentences translated without some heads."""

import numpy as np
from jaxtyping import Float

from viz_core.pretrained import Translator
from viz_core.pretrained.bleu import bleu_statistics
from viz_core.pretrained.samples import held_out
from viz_core.trace import HeadsOff, intervene, switched_off


def held_out_statistics(
    translator: Translator, off: HeadsOff, start: int, stop: int
) -> Float[np.ndarray, "sentences 10"]:
    """BLEU statistics of the translations of some held-out sentences with heads switched off."""
    some = held_out()[start:stop]
    with intervene(switched_off(off)):
        texts = translator.translate_texts([sample.english for sample in some])
    return bleu_statistics(texts, [sample.references for sample in some])
