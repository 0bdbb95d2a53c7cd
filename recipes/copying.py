"""Measure whether a translator copies unseen numbers and names: python -m recipes copying NAME --data DIR.

Sentences of the test split with other numbers and invented names in them, none of which stands in any training pair.
Written into training.json beside the checkpoint, and as a section of the card.
"""

import hashlib
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from recipes.files import record
from recipes.pair_augmentation import lower_case_words, names_of, number_words_of, numbers_of, vary
from recipes.sentence_pairs import Pair, Split, load_pairs, split_pairs, translate_all
from viz_core.pretrained import Translator, load_translator
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import beam_search, greedy_search

Kind: TypeAlias = Literal["numbers", "names"]
PER_KIND = 250
_SHOWN = 4  # sentences of each kind in the card

_WORD = re.compile(r"\d+|[^\W\d_]+")


class Case(NamedTuple):
    """A sentence to translate, its reference, and the words to copy."""

    kind: Kind
    english: str
    reference: str
    copied: tuple[str, ...]

    def is_right(self, french: str) -> bool:
        """Whether all names stand in this translation, or the digits of the reference in their order and no others."""
        if self.kind == "names":
            return set(self.copied) <= set(_WORD.findall(french))
        return re.findall(r"\d", french) == re.findall(r"\d", self.reference)


def measure_shipped(name: str, checkpoints: Path, data: Path) -> None:
    """Measure how many unseen numbers and names a translator copies."""
    translator = load_translator(name, folder=checkpoints)
    record_copying(translator, copying_cases(split_pairs(load_pairs(data))), checkpoints / name)


def copying_cases(split: Split, per_kind: int = PER_KIND) -> tuple[Case, ...]:
    """As many sentences with numbers as with names, the same on every machine; fewer where the test split has none.

    Sentences come by their hashes, each again with others in it until there are enough. What is put in stands in no
    training pair, and in no other of these sentences.
    """
    taken = {word for pair in split.train for text in pair for word in _WORD.findall(text)}
    ordinary = lower_case_words(split.train)
    first = {pair.english: pair for pair in reversed(split.test)}
    bases = sorted(first.values(), key=lambda pair: hashlib.sha256(pair.english.encode()).digest())
    found: list[Case] = []
    for kind in get_args(Kind):
        found += _of_kind(kind, bases, ordinary, taken, per_kind)
    return tuple(found)


def reserved(cases: Sequence[Case]) -> frozenset[str]:
    """What no training pair may hold, varied or not."""
    return frozenset(word for case in cases for word in case.copied)


def record_copying(translator: Translator, cases: Sequence[Case], folder: Path) -> None:
    """Measure, and write what was found beside the checkpoint; nothing where there are no cases."""
    if cases:
        measured = measure_copying(translator, cases)
        record(folder, {"copying": measured}, copying_section(measured))


def measure_copying(translator: Translator, cases: Sequence[Case]) -> dict[str, Any]:
    """How many translations are right of each kind, greedy and with beam 4, and the greedy ones' BLEU.

    Returns:
        "numbers" and "names", each with "sentences", how many are "right" and "right_beam_4" in percent, and "examples"
        as rows of English, greedy French and whether it is right; "bleu" of all, with the one reference each has.
    """
    english = [case.english for case in cases]
    greedy, beam = (
        translate_all(translator.model, translator.tokenizer, english, search, translator.device)
        for search in (greedy_search, beam_search)
    )
    measured: dict[str, Any] = {}
    for kind in get_args(Kind):
        own = [place for place, case in enumerate(cases) if case.kind == kind]
        measured[kind] = {
            "sentences": len(own),
            "right": _percent(cases[place].is_right(greedy[place]) for place in own),
            "right_beam_4": _percent(cases[place].is_right(beam[place]) for place in own),
            "examples": [
                [english[place], greedy[place], cases[place].is_right(greedy[place])] for place in own[:_SHOWN]
            ],
        }
    measured["bleu"] = round(corpus_bleu(greedy, [[case.reference] for case in cases]), 2)
    return measured


def copying_section(measured: dict[str, Any]) -> str:
    """Return the section of the card."""
    numbers, names = measured["numbers"], measured["names"]
    rows = "\n".join(
        f"| {english} | {french} | {'yes' if right else 'no'} |"
        for kind in (numbers, names)
        for english, french, right in kind["examples"]
    )
    return f"""## Copying

Sentences of the test split with numbers and invented names in them that stand in no training pair.

| what is right | sentences | greedy | beam 4 |
| --- | --- | --- | --- |
| all digits, in their order | {numbers["sentences"]} | {numbers["right"]:.1f}% | {numbers["right_beam_4"]:.1f}% |
| all names | {names["sentences"]} | {names["right"]:.1f}% | {names["right_beam_4"]:.1f}% |

BLEU of them all, greedy, with the one reference that each has: {measured["bleu"]:.1f}. The first of each kind, greedy:

| English | French | right |
| --- | --- | --- |
{rows}
"""


def _percent(rights: Iterable[bool]) -> float:
    found = list(rights)
    return round(100 * sum(found) / max(1, len(found)), 1)


def _of_kind(kind: Kind, bases: Sequence[Pair], ordinary: frozenset[str], taken: set[str], count: int) -> list[Case]:
    """Rounds over all sentences that hold something of this kind; `taken` grows by what is put in."""
    found: list[Case] = []
    bases = [
        pair
        for pair in bases
        if (names_of(pair, ordinary) if kind == "names" else numbers_of(pair) or number_words_of(pair))
    ]
    turn, before = 0, -1
    while before < len(found) < count:
        before = len(found)
        for pair in bases:
            mix = random.Random(f"{kind} {turn} {pair.english}")
            varied = vary(pair, ordinary, mix, taken, numbers=kind == "numbers", names=kind == "names")
            if varied is not None and len(found) < count:
                copied = varied.numbers + varied.names
                taken.update(copied)
                found.append(Case(kind, *varied.pair, copied))
        turn += 1
    return found
