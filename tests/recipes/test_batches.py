"""Batches: every example once, padding counted, the same for the same seed."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recipes.batches import (
    Example,
    bleu_by_length,
    collate,
    encode_pairs,
    plan_batches,
    token_batches,
    translate_all,
)
from recipes.sentence_pairs import Pair, train_tokenizer
from viz_core.models import EncoderDecoder
from viz_core.pretrained import Translator
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.tokenization import SpecialTokens

PAD = 0


def examples_of(lengths: list[tuple[int, int]]) -> list[Example]:
    """Examples of these lengths; the first source token tells them apart."""
    return [Example([9 + i, *[5] * (s - 1)], [1, *[6] * (t - 1)]) for i, (s, t) in enumerate(lengths)]


sizes = st.lists(st.tuples(st.integers(1, 12), st.integers(2, 12)), min_size=1, max_size=40)


@settings(max_examples=200)
@given(sizes, st.integers(1, 120), st.one_of(st.none(), st.integers(0, 5)))
def test_every_example_once_in_batches_as_full_as_they_can_be(
    lengths: list[tuple[int, int]], tokens: int, seed: int | None
) -> None:
    examples = examples_of(lengths)
    plans = plan_batches(examples, tokens, seed)
    assert sorted(i for plan in plans for i in plan) == list(range(len(examples)))
    batches = list(token_batches(examples, tokens, PAD, seed))
    assert len(batches) == len(plans)
    for batch in batches:
        assert batch.source.numel() + batch.target.numel() <= tokens or len(batch.source) == 1
    for plan, following in pairwise(plans if seed is None else []):
        more = [examples[i] for i in [*plan, following[0]]]
        assert len(more) * (max(len(e.source) for e in more) + max(len(e.target) for e in more)) > tokens


def test_the_order_and_the_padding_of_both_sides_by_hand() -> None:
    """A long source beside a long target: 4 tokens and 12 of padding."""
    assert plan_batches(examples_of([(10, 2), (1, 3)]), tokens=25) == [[0], [1]]
    assert plan_batches(examples_of([(10, 2), (1, 3)]), tokens=26) == [[0, 1]]
    shortest_first = [[1], [4], [3], [2], [0]]
    assert plan_batches(examples_of([(3, 9), (2, 2), (8, 5), (1, 5), (4, 2)]), tokens=1) == shortest_first


def test_a_seed_decides_everything() -> None:
    examples = examples_of([(4, 4)] * 30 + [(6, 7)] * 30)
    one = plan_batches(examples, 60, seed=1)
    assert one == plan_batches(examples, 60, seed=1)
    two = plan_batches(examples, 60, seed=2)
    assert {frozenset(plan) for plan in one} != {frozenset(plan) for plan in two}  # others go together
    widths = [len(examples[plan[0]].source) for plan in one]
    assert widths != sorted(widths)  # and not shortest first
    assert plan_batches([], 60) == plan_batches([], 60, seed=1) == []


def test_collate_literally() -> None:
    batch = collate([Example([7, 8, 2], [1, 5, 2]), Example([9, 2], [1, 5, 6, 4, 2])], pad=PAD)
    assert batch.source.tolist() == [[7, 8, 2], [9, 2, 0]]
    assert batch.valid_lens.tolist() == [3, 2]
    assert batch.target.tolist() == [[1, 5, 2, 0, 0], [1, 5, 6, 4, 2]]


@pytest.mark.parametrize(("max_tokens", "count"), [(100, 3), (4, 2), (3, 1), (2, 0)])
def test_examples_begin_and_end_and_long_ones_are_left_out(max_tokens: int, count: int) -> None:
    pairs = [Pair("a a a", "b"), Pair("a", "b"), Pair("a", "b b b b")]
    tokenizer = train_tokenizer([text for pair in pairs for text in pair], vocab_size=50)
    a, b = (tokenizer.token_to_id(f"▁{letter}") for letter in "ab")
    expected = [Example([a, a, a, 2], [1, b, 2]), Example([a, 2], [1, b, 2]), Example([a, 2], [1, b, b, b, b, 2])]
    fitting = [e for e in expected if max(len(e.source), len(e.target)) <= max_tokens]
    assert encode_pairs(tokenizer, pairs, max_tokens) == fitting
    assert len(fitting) == count




def test_answers_stand_where_their_questions_stood(translator: Translator, pairs: list[Pair]) -> None:
    """A search that says its source back gives every sentence back in its place."""
    seen: list[tuple[tuple[int, ...], int]] = []

    def echo(
        model: EncoderDecoder, source: Tensor, valid_lens: Tensor, special: SpecialTokens, limit: int
    ) -> list[list[int]]:
        seen.append((tuple(source.shape), limit))
        assert not model.training
        return [row[:n] for row, n in zip(source.tolist(), valid_lens.tolist(), strict=True)]

    sentences = [pair.english for pair in pairs]
    model = copy.deepcopy(translator.model).train()
    assert translate_all(model, translator.tokenizer, sentences, echo, CPU, rows=5) == sentences
    assert [shape[0] for shape, _ in seen] == [5] * 6 + [2]
    assert [limit for _, limit in seen] == [2 * shape[1] + 10 for shape, _ in seen]
    widths = [shape[1] for shape, _ in seen]
    assert widths == sorted(widths)  # sentences of like length together


def test_together_as_alone(translator: Translator, pairs: list[Pair]) -> None:
    sentences = [pair.english for pair in pairs[:6]]
    together = translate_all(translator.model, translator.tokenizer, sentences, greedy_search, CPU)
    again = translate_all(translator.model, translator.tokenizer, sentences[::-1], greedy_search, CPU, rows=2)
    assert all(together)
    # a row's limit is that of its batch, so only what both had room for must agree
    for a, b in zip(together, again[::-1], strict=True):
        n = min(len(a), len(b))
        assert a[:n] == b[:n]


def test_bins_by_length() -> None:
    hypotheses = ["a b c d", "e f g h", "i j k l", "q r s t"]
    references = [["a b c d"], ["e f g x", "e f x h"], ["m n o p"], ["q r s t"]]
    bins = bleu_by_length(hypotheses, references, lengths=[1, 4, 5, 30], edges=(1, 5, 8, 20))
    assert bins == [
        {"from": 1, "to": 4, "sentences": 2, "bleu": round(corpus_bleu(hypotheses[:2], references[:2]), 2)},
        {"from": 5, "to": 7, "sentences": 1, "bleu": round(corpus_bleu(hypotheses[2:3], references[2:3]), 2)},
        {"from": 20, "to": 30, "sentences": 1, "bleu": 100.0},
    ]
    assert 0 < bins[0]["bleu"] < 100
