"""Ways of masking a softmax that are in use, each run on one row of scores."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.masking import masked_softmax

Row = Float[Tensor, "keys"]
THE_BOOKS = -1e6


def guarded(scores: Row, length: int) -> Row:
    """-inf on masked keys; a row with every key masked becomes zeros (this library)."""
    return masked_softmax(scores[None, None], torch.tensor([length]))[0, 0]


def in_place(scores: Row, length: int) -> Row:
    """-1e6 assigned into a view of the scores, as the book's function does through its reshape."""
    view = scores.reshape(-1, len(scores))  # contiguous scores: the same memory
    view[:, length:] = THE_BOOKS
    return torch.softmax(view[0], dim=-1)


def filled(scores: Row, length: int, filler: float = THE_BOOKS) -> Row:
    """-1e6 filled into a copy by `masked_fill`; or -inf, without a special case for a row with every key masked."""
    masked = torch.arange(len(scores)) >= length
    return torch.softmax(scores.masked_fill(masked, filler), dim=-1)


class MaskVariant(NamedTuple):
    """A way to mask in a number type."""

    way: str
    mask: Callable[[Row, int], Row]
    dtype: torch.dtype
    filler: float  # the value of masked scores

    @property
    def name(self) -> str:
        """The way and the number type."""
        return f"{self.way}-{str(self.dtype).removeprefix('torch.')}"

    @property
    def filler_overflows(self) -> bool:
        """Whether the type turns a finite filler into an infinite one."""
        return math.isfinite(self.filler) and not math.isfinite(float(torch.tensor(self.filler, dtype=self.dtype)))


MASK_VARIANTS = (
    MaskVariant("guarded", guarded, torch.float32, -math.inf),
    MaskVariant("guarded", guarded, torch.float16, -math.inf),
    MaskVariant("bare", partial(filled, filler=-math.inf), torch.float32, -math.inf),
    MaskVariant("book", in_place, torch.float32, THE_BOOKS),
    MaskVariant("book", in_place, torch.float16, THE_BOOKS),
    MaskVariant("filled", filled, torch.float16, THE_BOOKS),
)


class MaskRun(NamedTuple):
    """Result of one variant on one row of scores at one valid length."""

    variant: MaskVariant
    length: int
    weights: Row | None  # in float32; None where torch raised an error
    refusal: str  # the message of that error
    leak: float  # total weight on masked keys; NaN without weights
    wrote: bool  # whether the caller's scores were changed
    scores_overflow: bool  # whether the scores were too large for the type, whatever the mask

    @property
    def verdict(self) -> str:
        """ "refused", "overflow" (of the scores), "nan", "leak" or "fine"."""
        if self.weights is None:
            return "refused"
        if self.weights.isnan().any():
            return "overflow" if self.scores_overflow else "nan"
        return "leak" if self.leak > 0 else "fine"


def run_variant(variant: MaskVariant, scores: Row, length: int) -> MaskRun:
    """Mask a copy of the scores by one variant; measure the weights and changes of the copy."""
    given = scores.to(variant.dtype, copy=True)
    before = given.clone()
    weights, refusal = None, ""
    try:
        weights = variant.mask(given, length).float()
    except RuntimeError as error:  # "value cannot be converted to type c10::Half without overflow"
        refusal = str(error)
    leak = math.nan if weights is None else float(weights[length:].sum())
    wrote, scores_overflow = not torch.equal(given, before), bool(before.isinf().any())
    return MaskRun(variant, length, weights, refusal, leak, wrote, scores_overflow)


def run_all(scores: Row) -> dict[str, list[MaskRun]]:
    """Every variant at every valid length from 0 to the number of keys."""
    lengths = range(len(scores) + 1)
    return {variant.name: [run_variant(variant, scores, length) for length in lengths] for variant in MASK_VARIANTS}
