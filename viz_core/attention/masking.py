"""Masks of keys, and the softmax over the keys that remain."""

from functools import reduce
from operator import add, and_

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.positional.entry import relative_positions
from viz_core.trace.arguments import (
    can_be_read,
    check_axes,
    check_device,
    check_integers,
    check_tensors,
    check_whole,
    described,
)
from viz_core.trace.weights import Bias, Mask, row_softmax


def masked_softmax(
    scores: Float[Tensor, "batch queries keys"],
    valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None = None,
) -> Float[Tensor, "batch queries keys"]:
    """Return the softmax over the first `valid_lens` keys of each row; other keys get weight 0.

    a_ij = exp(s_ij) / sum_(l < len_i) exp(s_il) for j < len_i, else 0
    (Dive into Deep Learning, section "Masked Softmax Operation", with -inf for its -1e6: the
    book's constant overflows float16 and makes an empty row uniform).

    Args:
        valid_lens: one length for each batch row, or one for each query; 0 to keys. A length
            of 0 gives a row of zeros. None means every key is valid.

    Returns:
        New weights; the input is not changed.
    """
    check_tensors(scores=scores)
    check_axes("batch queries keys", scores=scores)
    check_device(scores=scores, valid_lens=valid_lens)
    if valid_lens is not None:
        scores = scores.masked_fill(~length_mask(valid_lens, *scores.shape), -torch.inf)
    return row_softmax(scores)


def length_mask(
    valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"], batch: int, num_queries: int, num_keys: int
) -> Bool[Tensor, " batch #queries keys"]:
    """Return True where key j < valid length: (batch, 1, keys) for one length a row, else (batch, queries, keys).

    Raises:
        ValueError: if valid_lens is neither (batch,) nor (batch, queries), or holds anything but whole numbers from 0
            to num_keys: a boolean padding mask is not a length.
    """
    check_whole(0, batch=batch, num_queries=num_queries, num_keys=num_keys)
    if isinstance(valid_lens, Tensor) and valid_lens.dtype == torch.bool:
        raise ValueError(f"valid_lens: expected lengths, got {described(valid_lens)}; a mask goes to attend(mask=...)")
    check_integers(valid_lens=valid_lens)
    if tuple(valid_lens.shape) not in ((batch,), (batch, num_queries)):  # no set: an exporter's sizes have no hash
        raise ValueError(
            f"valid_lens: expected shape ({batch},) or ({batch}, {num_queries}), got {tuple(valid_lens.shape)}"
        )
    if can_be_read(valid_lens):
        least, most = (int(end) for end in valid_lens.aminmax())
        if least < 0 or most > num_keys:
            raise ValueError(f"valid_lens: expected lengths from 0 to {num_keys} keys, got {least} to {most}")
    lengths = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    return torch.arange(num_keys, device=valid_lens.device) < lengths[..., None]


def valid_keys(
    valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None, num_keys: int
) -> Bool[Tensor, "batch keys"] | None:
    """Return True where some query may attend to a key, as recordings note their padding; None where all may."""
    if valid_lens is None:
        return None
    longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
    return torch.arange(num_keys, device=valid_lens.device) < longest[:, None]


def window_mask(
    num_queries: int, num_keys: int, window: int, device: torch.device | None = None
) -> Bool[Tensor, "queries keys"]:
    """Return True where |position of the key - position of the query| < window; the queries are the last of the keys.

    Raises:
        ValueError: if window < 1, or there are more queries than keys.
    """
    check_whole(window=window)
    return relative_positions(num_queries, num_keys, device).abs() < window


def all_of(*masks: Mask | None) -> Mask | None:
    """Return the conjunction of the given masks; None without any, which allows every key."""
    return reduce(and_, given) if (given := [mask for mask in masks if mask is not None]) else None


def sum_of(*biases: Bias | None) -> Bias | None:
    """Return the sum of the given biases; None without any."""
    return reduce(add, given) if (given := [bias for bias in biases if bias is not None]) else None
