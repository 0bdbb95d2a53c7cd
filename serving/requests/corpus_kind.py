"""Heads of one kind of maps over many sentences: roles, strongest examples, words attended to."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from serving.requests.running_mean import Moments
from viz_core.hub.runs.run import Maps
from viz_core.hub.runs.token_text import Token, token_words
from viz_core.maps.measures import weight_shares
from viz_core.maps.roles import COLUMNS, ROLES, RoleTargets, role_masses, surest_role
from viz_core.maps.word_maps import is_word

STRONGEST = 8
"""So many sentences in which a head fires most are kept of each head."""

SAMPLED = 64
"""So many queries, one of a sentence, tell the quantiles of a head's largest weights."""

QUANTILES = (0.75, 0.5, 0.25, 0.0)

MOST_WORDS = 2000
"""So many different words are looked after: those that come first in the corpus."""


_EXAMPLES = 8


class Firing(NamedTuple):
    """The largest weight of a head in a sentence that exceeds uniform attention, special and first tokens left out."""

    weight: float
    sentence: int
    query: int
    key: int


@dataclass(frozen=True, eq=False)
class WordSeen:
    """Attention of each head to a word."""

    count: int  # how often it came and any query outside it could see it
    # sum of what each head gave it then: the weight on all its pieces, mean over those queries
    received: Float[np.ndarray, " heads"]
    sentences: tuple[int, ...]  # the first that have it

    def __add__(self, other: WordSeen) -> WordSeen:
        """The sum of both."""
        both = dict.fromkeys(self.sentences + other.sentences)
        return WordSeen(self.count + other.count, self.received + other.received, tuple(both)[:_EXAMPLES])

    @property
    def mean(self) -> Float[np.ndarray, " heads"]:
        """Mean attention of each head to it, 0 to 1."""
        return self.received / max(1, self.count)


class Measured(NamedTuple):
    """A mean over sentences with its 95% interval, what chance gives, and how many sentences there were."""

    value: float
    low: float
    high: float
    chance: float
    sentences: int


@dataclass(frozen=True, eq=False)
class KindFound:
    """Measures of the heads of one kind of maps."""

    heads: tuple[tuple[int, int], ...]  # layer and head from 0, in the order of all that follows
    roles: Moments  # of each head by `COLUMNS`, over sentences
    chance: Moments  # of a head that looks at all alike (`RoleTargets.even`), by `COLUMNS`
    strongest: tuple[tuple[Firing, ...], ...]  # of each head, the sentences in which it fires most, the strongest first
    # of each head, the largest weights of queries drawn from the corpus, special and first tokens left out
    sampled: tuple[tuple[Firing, ...], ...]
    words: dict[str, WordSeen]  # by lower-case word

    def __add__(self, other: KindFound) -> KindFound:
        """The sum of both."""
        if self.heads != other.heads:
            raise ValueError(f"expected what was found of the same heads, got {len(self.heads)} and {len(other.heads)}")
        words = dict(self.words)
        for word, seen in other.words.items():
            if word in words:
                words[word] = words[word] + seen
            elif len(words) < MOST_WORDS:
                words[word] = seen
        both = map(chain, self.strongest, other.strongest)
        strongest = tuple(tuple(heapq.nlargest(STRONGEST, fired, lambda f: (f.weight, -f.sentence))) for fired in both)
        both = map(chain, self.sampled, other.sampled)
        sampled = tuple(tuple(heapq.nsmallest(SAMPLED, fired, lambda f: _hash(f.sentence))) for fired in both)
        return KindFound(self.heads, self.roles + other.roles, self.chance + other.chance, strongest, sampled, words)

    def measured(self, place: int, column: str) -> Measured:
        """Mean attention of a head to a role or an offset (`COLUMNS`) over the sentences that have it; NaN without any.

        The interval is normal (`Moments.half_width`), cut at 0 and 1.
        """
        if column not in COLUMNS:
            raise ValueError(f"column: expected one of {', '.join(COLUMNS)}, got {column!r}")
        at = COLUMNS.index(column)
        value, half = float(self.roles.value()[place, at]), float(self.roles.half_width()[place, at])
        chance = float(self.chance.value()[at])
        low, high = float(np.clip(value - half, 0, 1)), float(np.clip(value + half, 0, 1))
        return Measured(value, low, high, chance, int(self.roles.count[place, at]))

    def at_quantiles(self, place: int) -> tuple[tuple[float, Firing], ...]:
        """A head's largest weight (1.0), then those at `QUANTILES` of its sampled queries; none twice."""
        by_weight = sorted(self.sampled[place])
        found = dict.fromkeys(self.strongest[place][:1], 1.0)
        for quantile in QUANTILES if by_weight else ():
            found.setdefault(by_weight[round(quantile * (len(by_weight) - 1))], quantile)
        return tuple((quantile, one) for one, quantile in found.items())

    def role_of(self, place: int) -> str | None:
        """The role with a head's most attention beyond chance, if that is at least `SURE`; else None."""
        found = {name: self.measured(place, column) for name, column in ROLES.items()}
        role = surest_role({name: (one.value, one.low, one.chance) for name, one in found.items()})
        return role and role[0]

    def heads_attending_to(self, word: str, count: int = 8) -> tuple[tuple[int, float], ...]:
        """The heads with most attention to a word, as index into `heads` and mean weight; () for an unknown word."""
        seen = self.words.get(word.strip().casefold())
        if seen is None:
            return ()
        return tuple((int(place), float(seen.mean[place])) for place in np.argsort(-seen.mean, kind="stable")[:count])


def _hash(sentence: int) -> int:
    """A number that looks random, the same on every machine (Knuth's multiplicative hash)."""
    return sentence * 2654435761 % 2**32


def read_kind(maps: Maps, sentence: int) -> KindFound:
    """Measures of the heads of one kind of maps in one sentence.

    What a head gives to a learned sink goes to no token: that column is left out.
    """
    keys = maps.text_keys
    on_itself = not maps.id.endswith("cross")
    # A decoder's queries are named by what they write; what stands at their places is what was read.
    queries = keys if on_itself else maps.query_tokens
    causal = maps.id.startswith("decoder") and on_itself
    targets = RoleTargets.of([t.text for t in queries], [t.text for t in keys], on_itself, causal)
    members, words = _words(keys)
    outside = (members == 0) if on_itself else torch.ones(len(members), len(queries), dtype=torch.bool)
    fires = _may_fire(queries, keys, on_itself)
    visible_to = ((members @ targets.visible.float().T) > 0) & outside
    even = targets.even
    roles, strongest, sampled, received = [], [], [], []
    for call in maps.calls:
        whole = weight_shares(call.weights()[0]) if call.signed else call.weights()[0]
        weights = whole[..., -len(keys) :]
        roles.append(role_masses(weights, targets))
        strongest += _strongest(weights, fires & (weights > even), sentence)
        sampled += _sampled(weights, fires & (even[0] > 0), sentence)
        given = (members @ weights.mT * visible_to).sum(dim=-1)  # on all pieces of each word
        received.append(given / visible_to.sum(dim=-1).where(visible_to.any(dim=-1), torch.nan))
    heads = tuple((layer, head) for layer, call in enumerate(maps.calls) for head in range(call.num_heads))
    return KindFound(
        heads,
        Moments.of(torch.cat(roles).double().numpy()),
        Moments.of(role_masses(even, targets)[0].double().numpy()),
        tuple(strongest),
        tuple(sampled),
        _seen(words, torch.cat(received).double().numpy(), sentence),
    )


def _may_fire(queries: Sequence[Token], keys: Sequence[Token], on_itself: bool) -> Bool[Tensor, "queries keys"]:
    """Pairs of words without attention sinks: special tokens and the first token (Clark 2019, Xiao 2024)."""
    rows = torch.tensor([not token.special for token in queries])
    columns = torch.tensor([not token.special and not (on_itself and i == 0) for i, token in enumerate(keys)])
    return rows[:, None] & columns


def _strongest(
    weights: Float[Tensor, "heads queries keys"], allowed: Bool[Tensor, "heads queries keys"], sentence: int
) -> list[tuple[Firing, ...]]:
    """The largest allowed weight of each head, if any is allowed."""
    values, places = weights.where(allowed, 0.0).flatten(1).max(dim=1)
    found = zip(values.tolist(), places.tolist(), strict=True)
    columns = weights.shape[-1]
    return [(Firing(value, sentence, *divmod(place, columns)),) if value > 0 else () for value, place in found]


def _sampled(
    weights: Float[Tensor, "heads queries keys"], allowed: Bool[Tensor, "queries keys"], sentence: int
) -> list[tuple[Firing, ...]]:
    """The largest allowed weight of one query of the sentence, for each head; none where no pair is allowed."""
    queries = allowed.any(dim=1).nonzero().flatten().tolist()
    if not queries:
        return [()] * len(weights)
    query = queries[_hash(sentence) // 7 % len(queries)]
    values, places = weights[:, query].where(allowed[query], -1.0).max(dim=1)
    found = zip(values.tolist(), places.tolist(), strict=True)
    return [(Firing(value, sentence, query, place),) for value, place in found]


def _words(keys: Sequence[Token]) -> tuple[Float[Tensor, "words keys"], list[str]]:
    """Which keys are pieces of each word, signs and special tokens left out; and the words in lower case."""
    pieces: dict[int, list[int]] = {}
    for place, (token, number) in enumerate(zip(keys, token_words(keys), strict=True)):
        if not token.special and is_word(token.text):
            pieces.setdefault(number, []).append(place)
    members = torch.zeros(len(pieces), len(keys))
    for row, places in enumerate(pieces.values()):
        members[row, places] = 1.0
    return members, ["".join(keys[place].text for place in places).casefold() for places in pieces.values()]


def _seen(words: Sequence[str], received: Float[np.ndarray, "heads words"], sentence: int) -> dict[str, WordSeen]:
    found: dict[str, WordSeen] = {}
    for column, word in enumerate(words):
        given = received[:, column]
        counted = not np.isnan(given).any()
        one = WordSeen(int(counted), given if counted else np.zeros(len(given)), (sentence,))
        found[word] = found[word] + one if word in found else one
    return found
