"""Two models on the same text: which heads changed, matched by layer and head number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from viz_core.hub.runs.run import HubRun, Maps
from viz_core.hub.runs.token_text import Token
from viz_core.maps.measures import scaled_rows, total_variation
from viz_core.runtime.interruption import may_end

Apart = Literal["", "tokens", "sizes"]
"""Why maps of two models cannot be subtracted: other tokens, other numbers of layers or heads; "" where they can."""


class HeadChange(NamedTuple):
    """Total variation of a head's attention between both models, 0 to 1; of signed maps that of `scaled_rows`."""

    change: float
    layer: int
    head: int


@dataclass(frozen=True)
class KindCompared:
    """The heads of one kind of maps in both models."""

    id: str  # of the kind
    apart: Apart  # why they cannot be compared, if so
    heads: tuple[HeadChange, ...]  # every head, the most changed first; () where they cannot be compared


def compare_heads(first: HubRun, second: HubRun) -> tuple[KindCompared, ...]:
    """Every kind of maps that both models have: whether heads can be compared, and how much each changed.

    Layer and head are matched by their numbers, as for a model and what was fine-tuned from it. Of a decoder that only
    reads what it wrote itself, the tokens count that both begin with, the prompt at least: no token sees what follows.
    """
    others = {maps.id: maps for maps in second.maps}
    prompt = max(first.num_prompt_tokens, second.num_prompt_tokens)
    return tuple(_compare(maps, others[maps.id], prompt) for maps in first.maps if maps.id in others)


def _compare(first: Maps, second: Maps, prompt: int) -> KindCompared:
    shared = _shared(first.key_tokens, second.key_tokens)
    whole = shared == len(first.key_tokens) == len(second.key_tokens)
    if first.id == "decoder-self" and first.query_tokens == first.key_tokens and shared >= prompt:
        rows = shared
    elif whole and _shared(first.query_tokens, second.query_tokens) == len(first.query_tokens):
        rows = len(first.query_tokens)
    else:
        rows = 0
    apart = _apart(first, second, rows)
    if apart:
        return KindCompared(first.id, apart, ())
    changes = []
    for layer, calls in enumerate(zip(first.calls, second.calls, strict=True)):
        may_end()
        maps = [(call.weights(queries=slice(0, rows), keys=slice(0, shared))[0], call.signed) for call in calls]
        own, other = (scaled_rows(weights) if signed else weights for weights, signed in maps)
        changes += [HeadChange(change, layer, head) for head, change in enumerate(total_variation(own, other).tolist())]
    return KindCompared(first.id, "", tuple(sorted(changes, key=lambda one: (-one.change, one.layer, one.head))))


def _apart(first: Maps, second: Maps, rows: int) -> Apart:
    heads = [[call.num_heads for call in maps.calls] for maps in (first, second)]
    if not rows or len(second.query_tokens) < rows:
        return "tokens"
    return "" if heads[0] == heads[1] else "sizes"


def _shared(first: Sequence[Token], second: Sequence[Token]) -> int:
    """Number of tokens in the common prefix."""
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a.label != b.label), min(len(first), len(second)))
