"""Masking and its gradient with deliberate errors, which the claims of the chapter detect."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.masking import length_mask
from viz_core.lessons.scoring_functions.mask_variants import THE_BOOKS

WEIGHTS = ("no-root", "no-softmax")
"""Wrong ways from scores to weights."""
Scores = Float[Tensor, "batch queries keys"]


def wrong_weights(how: str, scores: Float[Tensor, " n"], width: int) -> Float[Tensor, " n"]:
    """Weights of one query from its scores q . k / sqrt(width), computed in one of the `WEIGHTS`.

    "no-root": softmax of q . k; "no-softmax": the scores divided by their sum.
    """
    return torch.softmax(scores * width**0.5, dim=-1) if how == "no-root" else scores / scores.sum()


def written_by_the_book(scores: Scores, valid_lens: Int[Tensor, "..."] | None) -> float:
    """max change of the caller's own scores when -1e6 is assigned where no key may be seen, as the book's code does."""
    given = scores.clone()
    if valid_lens is not None:
        given[~length_mask(valid_lens, *given.shape).expand(given.shape)] = THE_BOOKS
    return float((given - scores).abs().max())


def gradient_without_delta(weights: Scores, key: int) -> Scores:
    """-a_ij a_il, without the delta: a weight that falls whichever score rises."""
    return -weights[..., key : key + 1] * weights
