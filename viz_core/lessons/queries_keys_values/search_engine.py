"""A search engine that learns from clicks: documents weighted by attention, and a query updated by each click."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.queries_keys_values.query_gradient import query_weights

_RATE = 0.25  # of the way that the gradient at temperature 1 shows


def click_loss(
    query: Float[Tensor, " d"], documents: Float[Tensor, "documents d"], clicked: int, temperature: float = 1.0
) -> Float[Tensor, ""]:
    """-log a_c with a = softmax(K q / T): small where the document that was clicked has most of the weight."""
    return -query_weights(query, documents, temperature)[clicked].log()


def ranks_while_learning(
    query: Float[Tensor, " d"],
    documents: Float[Tensor, "documents d"],
    clicked: int,
    temperature: float = 1.0,
    steps: int = 20,
) -> list[int]:
    """Rank of the clicked document, 1 for the first, before and after each step down the gradient of its loss.

    Ties count against it: with the lowest score it ranks last.

    (Dive into Deep Learning, section 11.1, exercise 3.)
    """
    ranks = []
    for _ in range(steps + 1):
        scores = documents @ query
        ranks.append(int((scores >= scores[clicked] - 1e-12).sum()))
        gradient = torch.func.grad(lambda q: click_loss(q, documents, clicked, temperature))(query)
        query = query - _RATE * temperature * gradient
    return ranks
