"""Words of pieces that are marked at their ends."""

import pytest

from viz_core.maps.word_maps import is_word, word_numbers


@pytest.mark.parametrize(
    ("pieces", "numbers"),
    [
        ("<|startoftext|> a</w> pho to</w> of</w> <|endoftext|>", (0, 1, 2, 2, 3, 4)),
        ("pho@@ to@@ graph of </s>", (0, 0, 0, 1, 2)),
    ],
)
def test_marks_at_the_end_of_pieces(pieces: str, numbers: tuple[int, ...]) -> None:
    assert word_numbers(pieces.split()) == numbers


def test_an_atom_in_brackets_is_no_special_token() -> None:
    assert [is_word(token) for token in "[NH2] [H] [N] [CLS] [SEP] [PAD]".split()] == [True] * 3 + [False] * 3
