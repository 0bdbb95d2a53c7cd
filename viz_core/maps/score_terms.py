"""Decomposition of first-layer scores into products of word and position embeddings."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.multi_head import MultiHeadAttention


class ScoreTerms(NamedTuple):
    """The four terms of every scaled score; their sum is the score."""

    word_word: Float[Tensor, "batch heads n n"]
    word_place: Float[Tensor, "batch heads n n"]  # the query's word with the key's place
    place_word: Float[Tensor, "batch heads n n"]
    place_place: Float[Tensor, "batch heads n n"]

    @property
    def total(self) -> Float[Tensor, "batch heads n n"]:
        """The scaled score before masks and softmax."""
        return self.word_word + self.word_place + self.place_word + self.place_place


@torch.no_grad()
def score_terms(
    layer: MultiHeadAttention, words: Float[Tensor, "batch n d"], places: Float[Tensor, "batch n d"]
) -> ScoreTerms:
    """Terms of (w_i + p_i) W_q . W_k (w_j + p_j) / sqrt(d), multiplied out (Dai 2019, section 3.3; He 2021, section 2).

    Exact for a first layer, whose input is the sum of word and place. Later layers read what earlier ones made of both,
    and no such sum is left. Biases of the projections count with the word.

    Args:
        layer: self-attention whose input is words + places.
        words, places: the two parts; places may have one row for the whole batch.

    Raises:
        ValueError: if positions enter within the layer or scores are capped: then a score is no sum of these.
    """
    if layer.softcap is not None or not layer.positions.is_identity:
        raise ValueError("layer: expected scores without softcap or positions of their own, got some")
    queries = _heads(layer, layer.W_q, words, places)
    keys = _heads(layer, layer.W_k, words, places)
    group = layer.num_heads // keys[0].shape[1]
    scale = layer.head_dim**-0.5
    return ScoreTerms(*(scale * q @ k.repeat_interleave(group, dim=1).mT for q in queries for k in keys))


def _heads(layer: MultiHeadAttention, W: torch.nn.Linear, words: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """The projection of the word, with the bias, and that of the place, split into heads."""
    both = W(words), torch.nn.functional.linear(places.expand_as(words), W.weight)
    first, second = (each.unflatten(-1, (-1, layer.head_dim)).transpose(1, 2) for each in both)
    return first, second
