"""Words of tokens: where they begin in every tokenizer's way of marking, and maps read word by word."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.maps.word_maps import is_word, merge_words, punctuation, separators, word_numbers


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
        (["a", "b", "c"], (0, 1, 2)),  # no mark: every token is a word
        ([], ()),
    ],
)
def test_words_begin_where_the_tokenizer_says(pieces: list[str], numbers: tuple[int, ...]) -> None:
    assert word_numbers(pieces) == numbers


def test_merging_averages_rows_and_sums_columns() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
    merged = merge_words(weights, (0, 0, 1), (0, 1, 1))
    torch.testing.assert_close(merged, torch.tensor([[0.3, 0.7], [0.0, 1.0]]))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_merged_rows_still_sum_to_one(queries: list[int], keys: list[int]) -> None:
    rows = [word for word, size in enumerate(queries) for _ in range(size)]
    columns = [word for word, size in enumerate(keys) for _ in range(size)]
    merged = merge_words(torch.rand(2, len(rows), len(columns)).softmax(dim=-1), rows, columns)
    assert merged.shape == (2, len(queries), len(keys))
    torch.testing.assert_close(merged.sum(dim=-1), torch.ones(2, len(queries)))


def test_merging_refuses_words_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="words for \\(2, 2\\) queries and keys, got 1 and 2"):
        merge_words(torch.zeros(2, 2), (0,), (0, 1))
    with pytest.raises(ValueError, match="query_words: expected numbers that count up from 0, got"):
        merge_words(torch.zeros(2, 2), (0, 2), (0, 1))


def test_separators_signs_and_words_are_told_apart() -> None:
    tokens = ["[CLS]", "don", "'", "t", "...", "3", "", "¿", "+", "</s>", "<|endoftext|>"]
    assert separators(tokens) == (9, 10)
    assert punctuation(tokens) == (2, 4, 7)
    assert [token for token in tokens if is_word(token)] == ["don", "t", "3"]
