"""The score of two words: the query of one, the key of the other, and their product, term by term."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention import MultiHeadAttention
from viz_core.models import TransformerEncoder
from viz_core.trace import attention_weights


class WordScores(NamedTuple):
    """One head on one sentence."""

    # queries, keys: each word projected by the head's slices of W_q and W_k
    queries: Float[Tensor, "n w"]
    keys: Float[Tensor, "n w"]

    def terms(self, query: int, key: int) -> Float[Tensor, " w"]:
        """q_t k_t for every component t: their sum is the score."""
        return self.queries[query] * self.keys[key]

    def scores(self, query: int) -> Float[Tensor, " n"]:
        """q . k / sqrt(w) with every word's key (Vaswani 2017, equation 1)."""
        return self.keys @ self.queries[query] / self.keys.shape[1] ** 0.5

    def weights(self, query: int) -> Float[Tensor, " n"]:
        """softmax of the scores, as the layer computes them."""
        rows = attention_weights(self.queries[None, None, query : query + 1], self.keys[None, None])
        return rows[0, 0, 0]


@torch.inference_mode()
def last_layer_input(encoder: TransformerEncoder, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Input of an encoder's last attention, for words whose embeddings are the rows of X.

    Positions are added, then all blocks but the last one are applied.
    """
    seen = encoder.pos_encoding(X[None].to(encoder.embedding.weight))
    for block in list(encoder.blocks)[:-1]:
        seen = block(seen)
    return seen[0]


@torch.inference_mode()
def word_scores(layer: MultiHeadAttention, X: Float[Tensor, "n d"], head: int) -> WordScores:
    """Queries and keys of one head for words whose vectors, as they come to the layer, are the rows of X."""
    seen = X.to(layer.W_q.weight)
    slices = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
    return WordScores(layer.W_q(seen)[:, slices].float().cpu(), layer.W_k(seen)[:, slices].float().cpu())
