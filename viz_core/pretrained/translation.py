"""A translation with its attention and the probability of each of its words."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.alignments import HeadErrors
from viz_core.pretrained.tokenization import join_pieces
from viz_core.runtime.assets import UNKNOWN, Provenance
from viz_core.runtime.hooks import show
from viz_core.trace import Trace

NUM_RIVALS = 5


class Rival(NamedTuple):
    """An alternative to a word, up to the first token that differs."""

    text: str
    probability: float


@dataclass(frozen=True)
class WordProbability:
    """A written word and its most likely alternatives.

    p(w) = prod_k p(t_k | what was written before) over its tokens t_k. A rival agrees with the word in its tokens
    before some place k and differs there: p = p(t_1) ... p(t_(k-1)) p(r). No two of these can happen together, so a
    word and its rivals never add up to more than 1.
    """

    text: str
    probability: float
    tokens: tuple[tuple[str, float], ...]  # each as people read it, with its probability: the factors of that product
    rivals: tuple[Rival, ...]  # the likeliest first

    @property
    def is_uncertain(self) -> bool:
        """Return whether the word's probability is below one half."""
        return self.probability < 0.5


def likeliest_others(
    log_p: Float[Tensor, "steps vocab"], written: Sequence[int], never: Sequence[int] = (), count: int = NUM_RIVALS
) -> list[list[tuple[int, float]]]:
    """For each step the ids of the likeliest tokens that were not written, with their log-probabilities.

    Args:
        never: ids that decoding would not write.
    """
    others = log_p.float().clone()
    others[:, list(never)] = -torch.inf
    others[range(len(written)), list(written)] = -torch.inf
    values, ids = others.topk(min(count, others.shape[-1]), dim=-1)
    rows = zip(ids.tolist(), values.tolist(), strict=True)
    return [[(i, p) for i, p in zip(*row, strict=True) if p > -math.inf] for row in rows]


def word_probabilities(
    pieces: Sequence[str],
    words: Sequence[int],
    log_p: Sequence[float],
    others: Sequence[Sequence[tuple[str, float]]],
    count: int = NUM_RIVALS,
) -> tuple[WordProbability, ...]:
    """The words that pieces make up, each with its probability and at most `count` rivals.

    Args:
        words: for each piece the number of the word it is a piece of.
        log_p: its log-probability, given those before it.
        others: the likeliest other pieces in its place, with theirs; as many as rivals are wanted.
    """
    starts = [k for k in range(len(words)) if k == 0 or words[k] != words[k - 1]]
    return tuple(
        WordProbability(
            join_pieces(pieces[start:stop]),
            math.exp(sum(log_p[start:stop])),
            tuple((join_pieces([pieces[k]]), math.exp(log_p[k])) for k in range(start, stop)),
            tuple(sorted(_rivals(pieces, log_p, others, start, stop), key=lambda rival: -rival.probability)[:count]),
        )
        for start, stop in zip(starts, [*starts[1:], len(words)], strict=True)
    )


def _rivals(
    pieces: Sequence[str], log_p: Sequence[float], others: Sequence[Sequence[tuple[str, float]]], start: int, stop: int
) -> Iterator[Rival]:
    for k in range(start, stop):
        before = sum(log_p[start:k])
        for piece, p in others[k]:
            yield Rival(join_pieces([*pieces[start:k], piece]), math.exp(before + p))


@dataclass(frozen=True)
class Translation:
    """A translation with its attention.

    Row i of a decoder map is the step that writes `target_tokens[i]`; its own keys are
    `decoder_tokens`: the beginning and the words written before.
    """

    text: str
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    decoder_tokens: tuple[str, ...]
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    log_probability: float  # natural logarithm of p(target | source)
    log_probabilities: tuple[float, ...]  # of each target token, given those before it: the terms of that sum
    words: tuple[WordProbability, ...]  # written words with their alternatives
    cache_error: float  # max |logits of the recorded pass - logits of the cached steps that wrote it|
    num_unknown: int  # source tokens the vocabulary does not have
    complete: bool  # False where max_new_tokens cut it short
    trace: Trace
    source_words: tuple[int, ...]  # the number of the word that each source token is a piece of
    target_words: tuple[int, ...]
    decoder_words: tuple[int, ...]
    alignment_errors: HeadErrors = ()  # as in its model's training.json; or none
    made: Provenance = UNKNOWN  # by which model, of which text

    def __repr__(self) -> str:
        """The text, the numbers of tokens and the trace, in one line."""
        sizes = f"{len(self.source_tokens)} tokens into {len(self.target_tokens)}"
        attention = repr(self.trace) if len(self.trace) else "no attention"
        return f"Translation({self.text!r}: {sizes}, {attention})"

    def view(self) -> Any:
        """Return the attention view of all maps, as `viz_core.view` does."""
        return show(self)
