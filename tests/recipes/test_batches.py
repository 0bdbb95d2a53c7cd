"""Batches: every example once, padding counted, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.batches import Example, PairBatch, collate, encode_pairs, plan_batches, token_batches
from recipes.pair_tokenizer import train_tokenizer
from recipes.sentence_pairs import Pair

PAD = 0


def examples_of(lengths: list[tuple[int, int]]) -> list[Example]:
    """Examples of these lengths; the first source token tells them apart."""
    return [Example([9 + i, *[5] * (s - 1)], [1, *[6] * (t - 1)]) for i, (s, t) in enumerate(lengths)]


sizes = st.lists(st.tuples(st.integers(1, 12), st.integers(2, 12)), min_size=1, max_size=40)


@settings(max_examples=200)
@given(sizes, st.integers(1, 120), st.one_of(st.none(), st.integers(0, 5)))
def test_every_example_once_within_the_budget(lengths: list[tuple[int, int]], tokens: int, seed: int | None) -> None:
    examples = examples_of(lengths)
    plans = plan_batches(examples, tokens, seed)
    assert sorted(i for plan in plans for i in plan) == list(range(len(examples)))
    batches = list(token_batches(examples, tokens, PAD, seed))
    assert len(batches) == len(plans)
    for batch in batches:
        assert batch.source.numel() + batch.target.numel() <= tokens or len(batch.source) == 1


@settings(max_examples=50)
@given(sizes, st.integers(10, 120))
def test_a_batch_is_as_full_as_its_order_allows(lengths: list[tuple[int, int]], tokens: int) -> None:
    examples = examples_of(lengths)
    plans = plan_batches(examples, tokens)
    for plan, following in pairwise(plans):
        more = [examples[i] for i in [*plan, following[0]]]
        padded = len(more) * (max(len(e.source) for e in more) + max(len(e.target) for e in more))
        assert padded > tokens


def test_padding_on_both_sides_counts() -> None:
    """A long source beside a long target: 4 tokens and 12 of padding."""
    assert plan_batches(examples_of([(10, 2), (1, 3)]), tokens=25) == [[0], [1]]
    assert plan_batches(examples_of([(10, 2), (1, 3)]), tokens=26) == [[0, 1]]


def test_without_a_seed_shortest_first() -> None:
    examples = examples_of([(3, 9), (2, 2), (8, 5), (1, 5), (4, 2)])
    assert plan_batches(examples, tokens=1) == [[1], [4], [3], [2], [0]]


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
    copied = batch.to(torch.device("cpu"))
    assert isinstance(copied, PairBatch)
    assert all(torch.equal(a, b) for a, b in zip(copied, batch, strict=True))


@pytest.mark.parametrize(("max_tokens", "count"), [(100, 3), (4, 2), (3, 1), (2, 0)])
def test_examples_begin_and_end_and_long_ones_are_left_out(max_tokens: int, count: int) -> None:
    pairs = [Pair("a a a", "b"), Pair("a", "b"), Pair("a", "b b b b")]
    tokenizer = train_tokenizer([text for pair in pairs for text in pair], vocab_size=50)
    a, b = (tokenizer.token_to_id(f"▁{letter}") for letter in "ab")
    expected = [Example([a, a, a, 2], [1, b, 2]), Example([a, 2], [1, b, 2]), Example([a, 2], [1, b, b, b, b, 2])]
    fitting = [e for e in expected if max(len(e.source), len(e.target)) <= max_tokens]
    assert encode_pairs(tokenizer, pairs, max_tokens) == fitting
    assert len(fitting) == count
