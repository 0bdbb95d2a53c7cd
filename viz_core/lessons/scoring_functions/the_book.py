"""The book's own examples of scoring functions, computed here: Dive into Deep Learning, section 11.3."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.masking import masked_softmax


def book_weights() -> Float[Tensor, "keys"]:
    """Masked softmax of the scores 0 and 1 and two more, of which the valid length 2 hides the last two."""
    scores = torch.tensor([[[0.0, 1.0, 5.0, 9.0]]])
    return masked_softmax(scores, torch.tensor([2]))[0, 0]
