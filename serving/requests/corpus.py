"""Heads of a model over a corpus: their roles, their strongest examples, the words they attend to.

One sentence after another goes through the recorder, and of each only sums are kept: memory does not grow with the
corpus. Results of parts add up, so that a corpus can be read in parts with progress, and stopped.

>>> found = read_sentences(model, sentences[:25]) + read_sentences(model, sentences[25:], first=25)
>>> kind = found.kinds["encoder-self"]
>>> {head: kind.role_of(place) for place, head in enumerate(kind.heads)}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from serving.requests.corpus_kind import KindFound, read_kind
from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import HubRun
from viz_core.hub.runs.token_text import Token
from viz_core.hub.store.checks import HubError
from viz_core.lab.scan import MOST_TOKENS
from viz_core.runtime.interruption import may_end

_MOST_REASONS = 20  # why sentences are left out, at most


@dataclass(frozen=True)
class CorpusFound:
    """Measures of all heads over some sentences."""

    sentences: int  # so many were read
    tokens: int  # so many they had, with what a translator wrote for them
    left_out: int  # so many could not be read
    why: tuple[tuple[int, HubError], ...]  # the first of those: number of the sentence, and what is wrong with it
    kinds: dict[str, KindFound]  # what heads do, by kind of maps ("encoder-self", "decoder-self", "decoder-cross")
    # labels of queries and keys of the sentences in `strongest` and `sampled`, by kind and number
    sides: dict[tuple[str, int], tuple[tuple[str, ...], tuple[str, ...]]]

    def __add__(self, other: CorpusFound) -> CorpusFound:
        """Measures over both; the sentences of `other` come after."""
        kinds = dict(self.kinds)
        for name, kind in other.kinds.items():
            kinds[name] = kinds[name] + kind if name in kinds else kind
        heads = ((name, head) for name, kind in kinds.items() for head in (*kind.strongest, *kind.sampled))
        shown = {(name, one.sentence) for name, head in heads for one in head}
        return CorpusFound(
            self.sentences + other.sentences,
            self.tokens + other.tokens,
            self.left_out + other.left_out,
            (self.why + other.why)[:_MOST_REASONS],
            kinds,
            {place: sides for place, sides in {**self.sides, **other.sides}.items() if place in shown},
        )


NOTHING = CorpusFound(0, 0, 0, (), {}, {})
"""Before any sentence was read."""


def read_sentences(
    model: HubModel,
    texts: Sequence[str],
    first: int = 0,
    max_new_tokens: int | None = None,
    most_tokens: int = MOST_TOKENS,
) -> CorpusFound:
    """Measures of all heads over some sentences; those that the model refuses are left out.

    A decoder reads and writes nothing. It may be ended between two sentences (`viz_core.runtime.interruption`).

    Args:
        first: number of the first of them in the corpus.
        max_new_tokens: most that an encoder-decoder writes for each.
        most_tokens: longer sentences are left out.
    """
    if "corpus" not in model.engine.features:
        raise ValueError(f"model: expected one that takes text, got {model.card.name}")
    budget = 0 if model.engine.stack == "decoder" else max_new_tokens
    runs = model.run_each(texts, max_new_tokens=budget, max_tokens=most_tokens)
    return reduce(CorpusFound.__add__, (_read(number, run) for number, run in enumerate(runs, first)), NOTHING)


def _read(number: int, run: HubRun | HubError) -> CorpusFound:
    """Measures of all heads in one sentence."""
    may_end()
    if isinstance(run, HubError):
        return replace(NOTHING, left_out=1, why=((number, run),))
    kinds, sides = {}, {}
    for maps in run.maps:
        kinds[maps.id] = read_kind(maps, number)
        sides[maps.id, number] = (_labels(maps.query_tokens), _labels(maps.text_keys))
    tokens = len(run.tokens) + len(run.target_tokens)
    return CorpusFound(1, tokens, 0, (), kinds, sides)


def _labels(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(token.label for token in tokens)
