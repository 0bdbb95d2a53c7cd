"""The scores of the encoder's first layer as four terms: word and position of query and key."""

from typing import NamedTuple

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from torch import nn

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
    """Terms of (w_i + p_i) W_q . W_k (w_j + p_j) / sqrt(d), multiplied out (Dai 2019, section 3.3; He 2021, section 2).

    Exact for the first layer, whose input is the sum of word and place. The second reads what the first made of both.
    """
    encoder = translator.model.encoder
    source = torch.tensor([translation.source_ids], device=translator.device)
    with record(states=True) as trace:
        encoder(source)
    words = encoder.embed(source)
    places, residuals = trace.states["encoder.embedding"] - words, []
    for layer, block in enumerate(encoder.blocks[:2]):
        recorded = trace[f"encoder.{layer}.self"].source
        if not isinstance(recorded, Projected):
            raise ValueError(f"expected a Transformer of projected queries and keys, got {type(recorded).__name__}")
        projections = (block.attention.W_q, block.attention.W_k)
        both = [(W(words), nn.functional.linear(places, W.weight)) for W in projections]
        queries, keys = ([rearrange(x, "1 n (h d) -> h n d", h=recorded.shape[1]) for x in own] for own in both)
        terms = recorded.scale * torch.stack([q @ k.mT for q in queries for k in keys])
        scores = recorded.scale * recorded.queries[0] @ recorded.keys[0].mT
        residuals.append(float((terms.sum(dim=0) - scores).abs().max() / scores.abs().max()))
        if not layer:
            first = terms[:, head].cpu().numpy()
    return ScoreParts(first, *residuals)
