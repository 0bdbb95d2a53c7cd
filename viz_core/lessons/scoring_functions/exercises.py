"""Measurements for the book's exercises of section 11.3: terms of a distance, unequal widths, costs."""

from typing import NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from viz_core.attention.scores import batch_product, dot_scores, general_scores
from viz_core.lessons.scoring_functions.gaussian_terms import gaussian_scores, gaussian_terms
from viz_core.trace.weights import row_softmax

QUERY_SIZE, KEY_SIZE = 3, 5
_QUERIES, _KEYS, _WIDTH = 5, 7, 8


def distance_errors(seed: int = 0) -> dict[str, float]:
    """max |softmax(s) - softmax(-|q - k|^2 / 2)| for three scores s on random queries and keys.

    "keys": q . k - |k|^2 / 2. "both": that less |q|^2 / 2. "neither": q . k / sqrt(d) (Dive into Deep Learning, section
    11.3, exercise 1).
    """
    generator = torch.Generator().manual_seed(seed)
    queries, keys = (torch.randn(n, _WIDTH, generator=generator, dtype=torch.float64) for n in (_QUERIES, _KEYS))
    wanted, terms = row_softmax(gaussian_scores(queries, keys)), gaussian_terms(queries, keys)
    scores = {"keys": terms.product + terms.key_term, "both": terms.total(), "neither": terms.product / _WIDTH**0.5}
    return {name: float((row_softmax(each) - wanted).abs().max()) for name, each in scores.items()}


def contributing_components(way: str, seed: int = 0) -> int | None:
    """Number of a key's five components that change its score with a query of three; None where the shapes do not fit.

    Args:
        way: "between", q^T M k with a 3 x 5 matrix; "padded", the query padded with zeros; "one", one 5 x 5 matrix
            for both (Dive into Deep Learning, section 11.3, exercise 2).
    """
    generator = torch.Generator().manual_seed(seed)
    query, M, square = (
        torch.randn(*shape, generator=generator)
        for shape in ((1, 1, QUERY_SIZE), (QUERY_SIZE, KEY_SIZE), (KEY_SIZE, KEY_SIZE))
    )
    key = torch.randn(1, 1, KEY_SIZE, generator=generator)
    score = {
        "between": lambda k: general_scores(query, k, M),
        "padded": lambda k: dot_scores(torch.nn.functional.pad(query, (0, KEY_SIZE - QUERY_SIZE)), k),
        "one": lambda k: dot_scores(query @ square, k @ square),
    }[way]
    try:
        return int((torch.func.grad(lambda k: score(k).sum())(key) != 0).sum())
    except (ValueError, RuntimeError):
        return None


class Counted(NamedTuple):
    """What attention of n queries on m keys costs."""

    multiplications: int  # counted by torch as it multiplies
    read: int  # numbers in queries, keys and values
    weights: int  # numbers of the score map, if it is stored


def count_costs(num_queries: int, num_keys: int, key_size: int, value_size: int) -> Counted:
    """Q K^T and then the weights times V, on ones, counted by torch: n m (d + v) multiplications.

    (Dive into Deep Learning, section 11.3, exercise 3.)
    """
    queries, keys, values = (
        torch.ones(1, n, size) for n, size in ((num_queries, key_size), (num_keys, key_size), (num_keys, value_size))
    )
    with FlopCounterMode(display=False) as counter:
        weights = batch_product(queries, keys.transpose(1, 2))
        batch_product(weights, values)
    read = queries.numel() + keys.numel() + values.numel()
    return Counted(counter.get_total_flops() // 2, read, weights.numel())  # a multiplication and an addition
