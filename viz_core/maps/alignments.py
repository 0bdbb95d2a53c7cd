"""Word alignments from cross-attention."""

from collections.abc import Sequence
from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor

from viz_core.maps.word_maps import merge_words
from viz_core.trace import AttentionCall

Reading = Literal["written", "read"]
"""Whose source word a row of cross-attention is taken for: the word its step writes, or the one it has just read."""

HeadErrors = tuple[tuple[tuple[float, float], ...], ...]
"""Alignment error rates of cross-attention: for each layer a pair for each head, in the order of `Reading`."""


def alignment(
    call: AttentionCall,
    reading: Reading = "written",
    *,
    row: int = 0,
    target_words: Sequence[int] | None = None,
    source_words: Sequence[int] | None = None,
) -> Float[Tensor, "heads targets sources"]:
    """Weights of each target word on the source words, for every head of a teacher-forced decoder's cross-attention.

    Step i reads y_(i-1) and writes y_i. For the word written, y_i is aligned by row i; for the word read, by
    row i + 1, the step whose input it is, so that the last token, which is never read, has no row
    (Chen 2020, "Accurate Word Alignment Induction from Neural Machine Translation", section 3: Shift-Att).
    Where tokens are pieces of words, rows are averaged and columns summed.

    Args:
        call: of the cross-attention, with a row for each target token, the end included.
        reading: which of the two.
        row: of the batch.
        target_words: the number of the word each target token is a piece of; each token is a word unless given.
        source_words: the same for the source.

    Raises:
        ValueError: if the call is not cross-attention, the reading is neither, there is but one step and it is asked
            for the word read, or there is not one number for each token.
    """
    if not isinstance(call, AttentionCall) or call.kind != "cross":
        raise ValueError(f"call: expected cross-attention, got {call!r}")
    if reading not in get_args(Reading):
        raise ValueError(f"reading: expected 'written' or 'read', got {reading!r}")
    targets = range(call.num_queries) if target_words is None else target_words
    sources = range(call.num_keys) if source_words is None else source_words
    if (len(targets), len(sources)) != (call.num_queries, call.num_keys):
        wanted = f"{call.num_queries} target and {call.num_keys} source tokens"
        raise ValueError(f"expected words for {wanted}, got {len(targets)} and {len(sources)}")
    weights = call.weights()[row]
    if reading == "written":
        return merge_words(weights, targets, sources)
    if call.num_queries < 2:
        raise ValueError(f"call: expected at least two steps, so that a word is read, got {call.num_queries}")
    return merge_words(weights[:, 1:], targets[:-1], sources)


def best_aligner(errors: HeadErrors, reading: Reading) -> tuple[float, int, int]:
    """Lowest alignment error rate for this reading, with its layer and head, each counted from 0.

    Raises:
        ValueError: if there is no head.
    """
    of = get_args(Reading).index(reading)
    rates = [(pair[of], layer, head) for layer, pairs in enumerate(errors) for head, pair in enumerate(pairs)]
    if not rates:
        raise ValueError("errors: expected those of at least one head, got none")
    return min(rates)
