"""Typed scores and their masked softmax, and other ways to mask one row of scores."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.attention.masking import length_mask, masked_softmax

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


Lengths = Int[Tensor, "batch"] | Int[Tensor, "batch queries"]

Scores: TypeAlias = Float[Tensor, "batch queries keys"]


def weight_gradient(scores: Scores, valid_lens: Lengths | None, key: int) -> Scores:
    """d a_i,key / d s_il for every query i and key l, by automatic differentiation."""
    leaf = scores.detach().clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(masked_softmax(leaf, valid_lens)[..., key].sum(), leaf)
    return gradient


def weight_gradient_by_formula(weights: Scores, key: int) -> Scores:
    """d a_key / d s_l = a_key (1 if l = key else 0) - a_key a_l: one row of the softmax's Jacobian.

    It needs the weights alone. A masked key has weight 0, so its gradient is 0; the
    entries of a row sum to 0, because adding one number to all scores changes no weight.
    """
    chosen = torch.zeros_like(weights)
    chosen[..., key] = 1.0
    return weights[..., key, None] * (chosen - weights)


class MaskedSoftmax(NamedTuple):
    """Scores, valid lengths and the weights that masked softmax makes of them."""

    scores: Scores
    valid_lens: Int[Tensor, "..."] | None
    weights: Scores
    gradient: Scores  # of the weight of key `key` (from 0) in every score
    key: int
    changed: float  # by how much the call changed its input

    @property
    def allowed(self) -> Bool[Tensor, "batch queries keys"]:
        """Whether a query may attend to a key."""
        if self.valid_lens is None:
            return torch.ones_like(self.scores, dtype=torch.bool)
        return length_mask(self.valid_lens, *self.scores.shape).expand(self.scores.shape)

    @property
    def empty_rows(self) -> list[int]:
        """Rows, counted over the batch, in which every key is masked."""
        empty: list[int] = (~self.allowed.any(dim=-1)).flatten().nonzero()[:, 0].tolist()
        return empty

    @property
    def num_masked(self) -> int:
        """Number of cells that are masked."""
        return int((~self.allowed).sum())

    @property
    def sum_error(self) -> float:
        """max |sum of a row's weights - 1|, or - 0 for an empty row."""
        expected = self.allowed.any(dim=-1).float()
        return float((self.weights.sum(dim=-1) - expected).abs().max())

    @property
    def masked_weight(self) -> float:
        """Largest weight on a masked key; 0 if none is masked."""
        masked = self.weights[~self.allowed]
        return float(masked.max()) if len(masked) else 0.0

    def gradient_error(self, gradient: Scores | None = None) -> float:
        """max |gradient - that by the formula a_key (delta - a_l)|, or by another one that is given."""
        formula = weight_gradient_by_formula(self.weights, self.key) if gradient is None else gradient
        return float((self.gradient - formula).abs().max())


def masked_scores(scores: Scores, valid_lens: Int[Tensor, "..."] | None, key: int) -> MaskedSoftmax:
    """Masked softmax of the scores, and the gradient of one key's weight."""
    given = scores.clone()
    weights = masked_softmax(given, valid_lens)
    gradient = weight_gradient(scores, valid_lens, key)
    return MaskedSoftmax(scores, valid_lens, weights, gradient, key, float((given - scores).abs().max()))


WRONG_WEIGHTS = ("no-root", "no-softmax")
"""Wrong ways from scores to weights."""


def wrong_weights(how: str, scores: Float[Tensor, " n"], width: int) -> Float[Tensor, " n"]:
    """Weights of one query from its scores q . k / sqrt(width), computed in one of the `WRONG_WEIGHTS`.

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
