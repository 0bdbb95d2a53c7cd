"""Alignments of words and of sound, words of tokens, maps between words, and which head shows a pattern best."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.whisper.generation_whisper import _dynamic_time_warping, _median_filter

from viz_core.lab.walk import opening_heads
from viz_core.lab.walk_records import Attention
from viz_core.maps.alignments import alignment, median_filter, token_starts, warping_path
from viz_core.maps.fingerprints import measure_maps, pattern_of
from viz_core.maps.head_measure import MapInfo
from viz_core.maps.word_maps import is_word, punctuation, separators, word_numbers
from viz_core.trace import AttentionCall, record, record_weights


def call_of(weights: torch.Tensor, site: str = "decoder.0.cross") -> AttentionCall:
    with record() as trace:
        record_weights(weights[None], site)
    return trace[site]


def test_a_row_is_of_the_word_it_writes_or_of_the_one_it_has_read() -> None:
    # y_0 y_1 <eos> over x_0 x_1 <eos>: head 0 looks at the word it writes, head 1 at the one it has read
    writes = torch.tensor([[0.0, 0.8, 0.2], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    reads = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.8, 0.2], [0.9, 0.1, 0.0]])
    call = call_of(torch.stack([writes, reads]))
    written, read = alignment(call, "written"), alignment(call, "read")
    assert (written.shape, read.shape) == ((2, 3, 3), (2, 2, 3))
    torch.testing.assert_close(written[0, :2], read[1])
    assert written[0].argmax(dim=-1).tolist() == [1, 0, 2]


def test_pieces_are_read_as_words() -> None:
    weights = torch.tensor([[[0.6, 0.2, 0.2], [0.2, 0.4, 0.4], [0.0, 0.0, 1.0]]])
    merged = alignment(call_of(weights), target_words=(0, 0, 1), source_words=(0, 1, 1))
    torch.testing.assert_close(merged, torch.tensor([[[0.4, 0.6], [0.0, 1.0]]]))
    read = alignment(call_of(weights), "read", target_words=(0, 0, 1), source_words=(0, 1, 1))
    torch.testing.assert_close(read, torch.tensor([[[0.1, 0.9]]]))  # rows 1 and 2 have read the pieces of word 0


# Small whole numbers: many ways cost the same.
COSTS = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda size: st.lists(st.integers(-4, 4), min_size=size[0] * size[1], max_size=size[0] * size[1]).map(
        lambda numbers: np.array(numbers, dtype=np.float64).reshape(size)
    )
)


def ways(rows: int, columns: int) -> Iterator[list[tuple[int, int]]]:
    """Every way from the first cell to the one in this row and column."""
    if (rows, columns) == (0, 0):
        yield [(0, 0)]
    for down, across in ((1, 1), (1, 0), (0, 1)):
        if rows >= down and columns >= across:
            yield from ([*way, (rows, columns)] for way in ways(rows - down, columns - across))


@given(st.tuples(st.integers(1, 8), st.integers(1, 20)), st.integers(0, 999))
def test_as_transformers_has_it(size: tuple[int, int], seed: int) -> None:
    """Where no two ways cost the same: of three alike it takes one, and of two the third, which may cost more."""
    cost = np.random.default_rng(seed).standard_normal(size)
    rows, columns = _dynamic_time_warping(cost)
    assert warping_path(cost).T.tolist() == [rows.tolist(), columns.tolist()]


@given(COSTS)
def test_no_other_way_is_cheaper(cost: np.ndarray) -> None:
    rows, columns = cost.shape
    cheapest = min(sum(cost[cell] for cell in way) for way in ways(rows - 1, columns - 1))
    assert sum(cost[i, j] for i, j in warping_path(cost)) == cheapest


@pytest.mark.parametrize("keys", [1, 3, 4, 5, 40])
def test_the_median_is_that_of_transformers(keys: int) -> None:
    values = torch.rand(2, 3, keys, generator=torch.Generator().manual_seed(keys))
    assert torch.equal(median_filter(values, 7), _median_filter(values[None], 7)[0])


def test_starts_follow_a_planted_staircase() -> None:
    """Token i lights up keys 8 i to 8 i + 7 in one head; the other says nothing; one spike is not a start."""
    weights = torch.full((2, 5, 40), 0.01)
    for token in range(5):
        weights[0, token, 8 * token : 8 * token + 8] = 0.1
    weights[0, 4, 3] = 0.9
    assert token_starts(weights, width=3).tolist() == [0, 8, 16, 24, 32]


@pytest.mark.parametrize(
    ("pieces", "numbers"),
    [
        (["[CLS]", "un", "##believ", "##able", "cat", ".", "[SEP]"], (0, 1, 1, 1, 2, 3, 4)),
        (["▁The", "▁sleep", "w", "alk", "er", ".", "<eos>"], (0, 1, 1, 1, 1, 2, 3)),
        (["The", "Ġcat", "s", ",", "Ġtoo"], (0, 1, 1, 2, 3)),
        (["▁was", "n't", "▁j'", "ai"], (0, 0, 1, 1)),
        (["▁I", "▁don", "'", "t", "▁go", "."], (0, 1, 1, 1, 2, 3)),  # as byte-level BPE's "Ġdon", "'t"
        (["▁the", "▁boys", "'", "▁dog"], (0, 1, 2, 3)),
        (["<bos>", "in", "▁a"], (0, 1, 2)),  # nothing joins a special token
        ([], ()),
        # Marks at the end of pieces.
        ("<|startoftext|> a</w> pho to</w> of</w> <|endoftext|>".split(), (0, 1, 2, 2, 3, 4)),
        ("pho@@ to@@ graph of </s>".split(), (0, 0, 0, 1, 2)),
    ],
)
def test_words_begin_where_the_tokenizer_says(pieces: list[str], numbers: tuple[int, ...]) -> None:
    assert word_numbers(pieces) == numbers


def test_separators_signs_and_words_are_told_apart() -> None:
    tokens = ["[CLS]", "don", "'", "t", "...", "3", "", "¿", "+", "</s>", "<|endoftext|>"]
    assert separators(tokens) == (9, 10)
    assert punctuation(tokens) == (2, 4, 7)
    assert [token for token in tokens if is_word(token)] == ["don", "t", "3"]
    assert [is_word(token) for token in "[NH2] [N] [CLS] [PAD]".split()] == [True, True, False, False]  # atoms


@pytest.mark.parametrize(
    ("fingerprint", "expected"),
    [
        ({"previous": 0.6, "next": 0.1, "entropy": 3.0}, "previous"),
        ({"previous": 0.49, "first": 0.48, "entropy": 0.9}, None),
        ({"separator": 0.9, "next": 0.5}, "separator"),
        ({"written": 0.76, "read": 0.1, "first": 0.2, "distance": 4.0}, "written"),
        ({}, None),
    ],
)
def test_a_pattern_gets_half_of_the_weight(fingerprint: dict[str, float], expected: str | None) -> None:
    assert pattern_of(fingerprint) == expected


def attention(site: str, weights: torch.Tensor) -> Attention:
    map_, vectors, rows = weights.numpy(), np.zeros((*weights.shape[:2], 2), np.float32), np.zeros((5, 2), np.float32)
    return Attention(site, *[vectors] * 3, map_, map_ >= 0, map_, vectors, *[rows] * 3)


def test_a_walk_opens_on_the_clearest_head_else_on_the_one_that_rests_least() -> None:
    n, keys = 5, ["The", "cat", "is", "here", "<eos>"]
    mark, before = torch.zeros(n, n), torch.zeros(n, n)
    mark[:, -1] = 1
    before[range(1, n), range(n - 1)] = before[0, 0] = 1
    heads = torch.stack([mark, torch.full((n, n), 1 / n), before])
    assert pattern_of(measure_maps(heads, MapInfo(n, n, separators=(4,)))[0]) == "separator"
    layers = [attention("encoder.0.self", each) for each in (heads[:2], heads)]
    assert opening_heads(layers, keys) == (1, ((1, None), (2, "previous")))
    layers = [attention("decoder.0.cross", heads[:2])] * 2
    errors = (((0.9, 0.9), (0.9, 0.1)), ((0.9, 0.9), (0.2, 0.9)))  # "read" is clearer, but not of the word written
    assert opening_heads(layers, keys, errors) == (1, ((1, "read"), (1, "written")))
