"""Fingerprints of heads: measures, thumbnails and errors, never holding a whole long map; and the word for each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.alignments import Reading
from viz_core.maps.head_measure import MapBlock, MapInfo
from viz_core.maps.measures import Patches, check_tokens
from viz_core.maps.register import MEASURES
from viz_core.runtime.device import parallel_map
from viz_core.runtime.hooks import may_end
from viz_core.trace import AttentionCall
from viz_core.trace.arguments import index_range
from viz_core.trace.call import max_pooled


def row_sum_error(trace: Iterable[AttentionCall], most: int | None = None) -> float:
    """Largest |1 - sum_j a_ij| over every head of every call but signed ones; a row with every key masked counts as 0.

    Args:
        most: only so many of the last queries, which see the most keys; all of them unless given.
    """
    last = slice(None if most is None else -most, None)
    errors = [row_error(call.weights(queries=last)) for call in trace if not call.signed]
    return float(torch.stack(errors).max()) if errors else 0.0


def row_error(weights: Float[Tensor, "*maps queries keys"]) -> Float[Tensor, ""]:
    """Largest |1 - sum_j a_ij| over all rows, NaN if a row has one; a row with every key masked counts as 0."""
    sums = weights.sum(dim=-1)
    return torch.where(sums == 0, 0.0, (sums - 1).abs()).max()


def future_weight(call: AttentionCall, most: int | None = None, first: int = 0) -> float:
    """Largest size of a weight w_ij on a later key, j > i: 0 under a causal mask.

    Args:
        most: only so many of the first queries, which have the most future; all of them unless given.
        first: from this query on, of those that may not look ahead: a prompt may be read in both directions.
    """
    rows = call.weights(queries=slice(first, None if most is None else first + most))
    if not rows.numel():
        return 0.0
    return float(rows.triu(diagonal=1 + first + call.num_keys - call.num_queries).abs().max())


# A block of at most so many weights is measured at a time: 1 MB.
_BLOCK_WEIGHTS = 2**18

Fingerprint = dict[str, float]
"""Measures of one head by their names in `MEASURES`, of those that apply to its maps."""


@dataclass(frozen=True)
class LayerMeasures:
    """The heads of one layer: a fingerprint and an overview each.

    Attributes:
        fingerprints: one for each head.
        overview: the largest weights, as in `AttentionCall.overview`.
        row_error: largest deviation of a row sum from 1 (`viz_core.maps.fingerprints.row_error`); 0 for signed maps.
    """

    fingerprints: tuple[Fingerprint, ...]
    overview: Float[Tensor, "heads rows columns"]
    row_error: float


def measure_layer(
    call: AttentionCall,
    row: int = 0,
    *,
    on_itself: bool = True,
    separators: Sequence[int] = (),
    patches: Patches | None = None,
    size: int = 64,
) -> LayerMeasures:
    """Measure every head of a call for one text, without its padding, block of queries by block of queries.

    Args:
        row: of the batch: the text.
        on_itself: whether queries and keys are positions of one sequence.
        separators: keys that separate or end, numbered as in the call.
        patches: where the tokens lie on a picture.
        size: of the overview, at most so many on a side.

    Raises:
        ValueError: if there are no queries or keys, `on_itself` with unequal numbers of them, or other numbers of
            tokens than the picture has.
    """
    queries, keys = call.num_queries, call.num_keys
    if not queries or not keys or (on_itself and queries != keys):
        expected = "as many queries as keys" if on_itself else "at least one query and one key"
        raise ValueError(f"call: expected {expected}, got {queries} and {keys}")
    if patches is not None:
        check_tokens((queries, keys), patches.grid, patches.num_special)
    row = index_range(row, len(call.key_mask), "row")[0]
    tokens = call.key_mask[row].tolist()
    before = tokens.index(True) if True in tokens else 0
    log_decay = getattr(call.source, "log_decay", None)
    if log_decay is not None:
        log_decay = log_decay.mean(dim=-1) if log_decay.dim() == 4 else log_decay  # of all channels
        log_decay = log_decay.expand(len(call.key_mask), -1, -1)[row][:, tokens].float().cpu()
    call = call.text(row, on_itself)
    queries, keys = call.num_queries, call.num_keys
    if not queries or not keys:
        raise ValueError(f"call: expected a text with a token, got padding alone in row {row}")
    own_separators = tuple(i - before for i in separators if tokens[i])
    info = MapInfo(queries, keys, on_itself, own_separators, patches, signed=call.signed, decays=log_decay is not None)
    # Few large heads or many small ones at a time: what is measured together stays in the processor's cache.
    together = max(1, _BLOCK_WEIGHTS // (queries * keys))
    groups = [slice(head, min(head + together, call.num_heads)) for head in range(0, call.num_heads, together)]
    parts = parallel_map(lambda heads: _measure_heads(call, heads, info, size, log_decay), groups)
    return LayerMeasures(
        tuple(fingerprint for part in parts for fingerprint in part.fingerprints),
        torch.cat([part.overview for part in parts]),
        float(torch.tensor([part.row_error for part in parts]).max()),
    )


def measure_maps(weights: Float[Tensor, "heads queries keys"], info: MapInfo) -> tuple[Fingerprint, ...]:
    """Fingerprints of whole maps, such as several heads combined."""
    sums: dict[str, Tensor] = {}
    _add_sums(sums, MapBlock(weights, 0, info))
    return _fingerprints(sums, info, len(weights))


def _measure_heads(
    call: AttentionCall, heads: slice, info: MapInfo, size: int, log_decay: Float[Tensor, "all_heads n"] | None
) -> LayerMeasures:
    """Measure and pool some heads in one pass over their rows."""
    sums: dict[str, Tensor] = {}
    errors = [torch.zeros(())]
    height = max(1, _BLOCK_WEIGHTS // ((heads.stop - heads.start) * info.num_keys))

    def blocks() -> Iterator[Float[Tensor, "heads some keys"]]:
        for first in range(0, info.num_queries, height):
            may_end()
            weights = call.weights(head=heads, queries=slice(first, first + height))[0]
            gates = {} if log_decay is None else {"log_decay": log_decay[heads, first : first + height]}
            _add_sums(sums, MapBlock(weights, first, info, **gates))
            if not info.signed:
                errors.append(row_error(weights))
            yield weights

    overview = max_pooled(blocks(), info.num_queries, info.num_keys, size, call.signed)
    return LayerMeasures(
        _fingerprints(sums, info, heads.stop - heads.start), overview, float(torch.stack(errors).max())
    )


def _add_sums(sums: dict[str, Tensor], block: MapBlock) -> None:
    for name, measure in MEASURES.items():
        if measure.sums is not None and measure.fits(block.info):
            added = measure.sums(block).double()
            sums[name] = sums[name] + added if name in sums else added


def _fingerprints(sums: dict[str, Tensor], info: MapInfo, heads: int) -> tuple[Fingerprint, ...]:
    values = {name: MEASURES[name].value(total, info).tolist() for name, total in sums.items()}
    return tuple({name: numbers[head] for name, numbers in values.items()} for head in range(heads))


def with_accuracies(
    fingerprints: Iterable[Fingerprint], errors: Iterable[tuple[float, float]]
) -> tuple[Fingerprint, ...]:
    """Fingerprints of a layer's heads with their alignment accuracies, 1 - error rate, as `HeadErrors` orders them."""
    return tuple(
        own | {reading: 1 - error for reading, error in zip(get_args(Reading), pair, strict=True)}
        for own, pair in zip(fingerprints, errors, strict=True)
    )


CLEAR = 0.5
"""A pattern gets at least this share of a head's weight, or aligns at least this share of the words."""

RESTING = ("diagonal", "first", "separator")
"""Patterns that relate no two words: a head looks at each word itself, or rests on a mark."""


def pattern_of(fingerprint: Fingerprint) -> str | None:
    """Return the measure that names what a head attends to; None where nothing gets `CLEAR` of its weight.

    It is the largest of the measures that name heads: roles, alignment accuracies, and weight on nearby patches.
    """
    shares = {name: share for name, share in fingerprint.items() if name in MEASURES and MEASURES[name].names_heads}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= CLEAR else None


def clearest_head(layers: Sequence[Sequence[Fingerprint]]) -> tuple[int, int] | None:
    """Return layer and head, from 0, of the head with the most weight on another word that its pattern names.

    None where no head has a pattern, or every pattern is a resting one.
    """
    found = {
        (layer, head): fingerprint[name]
        for layer, heads in enumerate(layers)
        for head, fingerprint in enumerate(heads)
        if (name := pattern_of(fingerprint)) and name not in RESTING
    }
    return max(found, key=lambda place: found[place], default=None)
