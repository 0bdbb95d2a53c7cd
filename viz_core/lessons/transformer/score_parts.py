"""The scores of the encoder's first layer as four terms: word and position of query and key."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from viz_core.maps.score_terms import score_terms
from viz_core.pretrained import Translation, Translator
from viz_core.trace import record
from viz_core.trace.source import Projected

TERMS = ("word_word", "word_place", "place_word", "place_place")


class ScoreParts(NamedTuple):
    """The scores of one head, term by term in the order of `TERMS`."""

    terms: Float[np.ndarray, "terms n n"]
    residual: float  # max |sum of the terms - scaled score of the layer| / max |score|, over all heads
    later: float  # the same for the second layer, whose input is no sum of word and place any more

    @property
    def spreads(self) -> dict[str, float]:
        """How far each term's scores differ over the keys of a query: what the softmax sees, mean over queries."""
        return dict(zip(TERMS, self.terms.std(axis=-1).mean(axis=-1).tolist(), strict=True))

    def highest_key(self, term: str) -> tuple[int, int]:
        """The key for which a term is highest in most rows, and in how many."""
        highest = np.bincount(self.terms[TERMS.index(term)].argmax(axis=-1))
        return int(highest.argmax()), int(highest.max())


@torch.inference_mode()
def score_parts(translator: Translator, translation: Translation, head: int) -> ScoreParts:
    """The terms of one head of the encoder's first layer, compared with its recorded queries and keys."""
    encoder = translator.model.encoder
    source = torch.tensor([translation.source_ids], device=translator.device)
    with record() as trace:
        encoder(source)
    words = encoder.embed(source)
    places = encoder.pos_encoding(torch.zeros_like(words))
    residuals = []
    for layer, block in enumerate(encoder.blocks[:2]):
        terms = score_terms(block.attention, words, places)
        recorded = trace[f"encoder.{layer}.self"].source
        if not isinstance(recorded, Projected):
            raise ValueError(f"expected a Transformer of projected queries and keys, got {type(recorded).__name__}")
        scores = recorded.scale * recorded.queries @ recorded.keys.mT
        residuals.append(float((terms.total - scores).abs().max() / scores.abs().max()))
        if not layer:
            first = torch.stack([getattr(terms, name)[0, head] for name in TERMS]).cpu().numpy()
    return ScoreParts(first, *residuals)
