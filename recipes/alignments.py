"""How well each cross-attention head of a translator aligns words: python -m recipes alignments NAME.

The reference is a set of hand-aligned sentence pairs, none of which was trained on. Results go into training.json and
the card.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from jaxtyping import Float
from tokenizers import Encoding
from torch import Tensor

from recipes.files import record
from viz_core.maps.alignments import Reading, alignment
from viz_core.pretrained import Translator, load_translator
from viz_core.runtime.assets import ASSETS, reading
from viz_core.trace import record as record_attention

_PAIRS = ASSETS / "samples" / "alignments-en-fr.tsv"
_WORDS = {"english": re.compile(r"\w+?(?=n't\b)|n't\b|'\w+|\w+|[^\w\s]"), "french": re.compile(r"\w+'|\w+|[^\w\s]")}
_LINK = re.compile(r"(\d+)([-?])(\d+)")


@dataclass(frozen=True)
class AlignedPair:
    """An English sentence, its translation, and which words stand for each other, as (English, French) from 0."""

    english: str
    french: str
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]  # beside the sure ones

    @property
    def english_spans(self) -> list[tuple[int, int]]:
        """Where each English word begins and ends."""
        return [found.span() for found in _WORDS["english"].finditer(self.english)]

    @property
    def french_spans(self) -> list[tuple[int, int]]:
        """Where each French word begins and ends."""
        return [found.span() for found in _WORDS["french"].finditer(self.french)]


def aligned_samples() -> tuple[AlignedPair, ...]:
    """All of them, in the order of the file, which says where they come from and how their words are cut."""
    with reading(_PAIRS):
        lines = _PAIRS.read_text(encoding="utf-8").splitlines()
        return tuple(_read(line) for line in lines if not line.startswith("#"))


def _read(line: str) -> AlignedPair:
    english, french, links = line.split("\t")
    found = [(sign, (int(i), int(j))) for i, sign, j in _LINK.findall(links)]
    sure, possible = (frozenset(pair for sign, pair in found if sign == wanted) for wanted in "-?")
    return AlignedPair(english, french, sure, possible)


Pairs = Collection[tuple[int, int]]  # (source word, target word), each from 0


def aligned_pairs(weights: Float[Tensor, "targets sources"], num_sources: int) -> set[tuple[int, int]]:
    """The source word with the largest weight for each target word, as (source, target).

    A target word that looks most at something from `num_sources` on, such as the end of the sentence, has no partner:
    A = {(argmax_j w_ij, i)} (Chen 2020, section 3).
    """
    return {(source, target) for target, source in enumerate(weights.argmax(dim=-1).tolist()) if source < num_sources}


def alignment_error_rate(found: Sequence[Pairs], sure: Sequence[Pairs], possible: Sequence[Pairs]) -> float:
    """Alignment error rate over all sentences, 1 - (|A & S| + |A & P|) / (|A| + |S|): 0 to 1, 0 is perfect.

    S are pairs that people were sure of, P those and the ones they thought possible
    (Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 5.1).

    Args:
        found: A, the pairs of each sentence.
        sure: those that people were sure of.
        possible: those that they thought possible; sure ones need not be repeated.
    """
    hits = pairs = 0
    for a, s, p in zip(map(set, found), map(set, sure), map(set, possible), strict=True):
        hits += len(a & s) + len(a & (s | p))
        pairs += len(a) + len(s)
    return 1 - hits / pairs


def measure_shipped(name: str, checkpoints: Path, _: Path | None) -> None:
    """Measure how well each cross-attention head of a translator aligns the words of hand-aligned sentence pairs."""
    record_alignments(load_translator(name, folder=checkpoints), checkpoints / name)


def record_alignments(translator: Translator, folder: Path) -> None:
    """Measure the alignments and write them beside the checkpoint; nothing for a model without attention."""
    measured = measure_alignments(translator)
    if measured is not None:
        record(folder, {"alignments": measured}, alignment_section(measured))


def measure_alignments(translator: Translator) -> dict[str, Any] | None:
    """Return the alignment error rate of every cross-attention head, for the word written and for the word read.

    The model is teacher-forced on the reference translations; none of the pairs was trained on.

    Returns:
        "pairs", how many there are; "diagonal", the rate of pairing words by their place in the sentence alone;
        "written" and "read", a list of layers with a rate for each head. None for a model without attention.
    """
    samples = aligned_samples()
    sure, possible = [each.sure for each in samples], [each.possible for each in samples]
    found = [_found(translator, each) for each in samples]
    if not found[0]:
        return None
    heads = sorted({(layer, head) for _, layer, head in found[0]})
    rates = {
        (order, *head): round(alignment_error_rate([each[order, *head] for each in found], sure, possible), 4)
        for order in get_args(Reading)
        for head in heads
    }
    return {
        "pairs": len(samples),
        "diagonal": round(alignment_error_rate([_diagonal(each) for each in samples], sure, possible), 4),
        **{order: _by_layer(rates, order) for order in get_args(Reading)},
    }


def word_of_each_token(encoding: Encoding, spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the word number of each token, by the position of its last character; one more for the end token.

    A blank token belongs to the word after it.
    """
    stops = [stop for _, stop in spans]
    return (*(bisect_right(stops, max(start, end - 1)) for start, end in encoding.offsets), len(spans))


def alignment_section(measured: dict[str, Any]) -> str:
    """Return the section of the card."""
    lines = ["| head | word written | word read |", "| --- | --- | --- |"]
    for layer, (written, read) in enumerate(zip(measured["written"], measured["read"], strict=True), start=1):
        lines += [
            f"| layer {layer}, head {head} | {100 * w:.1f}% | {100 * r:.1f}% |"
            for head, (w, r) in enumerate(zip(written, read, strict=True), start=1)
        ]
    return f"""## Alignment

Alignment error rate of each cross-attention head on {measured["pairs"]} held-out sentence pairs aligned by hand
(assets/samples/alignments-en-fr.tsv), smaller is better, for the word that a step writes and for the word that it has
read. Words paired by their place in the sentence alone: {100 * measured["diagonal"]:.1f}%.

{chr(10).join(lines)}
"""


@torch.inference_mode()
def _found(translator: Translator, sample: AlignedPair) -> dict[tuple[Reading, int, int], Pairs]:
    """Aligned pairs of each head, by order, layer and head."""
    source, target = (translator.tokenizer.encode(text) for text in (sample.english, sample.french))
    end = translator.special.eos
    inputs = translator.teacher_forced([*source.ids, end], [*target.ids, end])
    with record_attention() as trace:
        translator.model(*inputs)
    source_words = word_of_each_token(source, sample.english_spans)
    target_words = word_of_each_token(target, sample.french_spans)
    num_source, num_target = len(sample.english_spans), len(sample.french_spans)
    found: dict[tuple[Reading, int, int], Pairs] = {}
    for call in (call for call in trace if call.kind == "cross"):
        for order in get_args(Reading):
            weights = alignment(call, order, target_words=target_words, source_words=source_words)
            for head, own in enumerate(weights[:, :num_target]):
                found[order, call.layer, head] = aligned_pairs(own, num_source)
    return found


def _diagonal(sample: AlignedPair) -> Pairs:
    """Pairs of words at the same relative position in their sentences."""
    source, target = len(sample.english_spans), len(sample.french_spans)
    return {((2 * j + 1) * source // (2 * target), j) for j in range(target)}


def _by_layer(rates: dict[tuple[Reading, int, int], float], order: Reading) -> list[list[float]]:
    layers = sorted({layer for _, layer, _ in rates})
    return [[rate for (of, at, _), rate in rates.items() if (of, at) == (order, layer)] for layer in layers]
