"""English as rows of tokens: what shares a row, what is hidden in it, and that nothing is lost on the way."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.text_rows import SPECIAL, Sentence, TextBatch, collate, encode, hide_words, plan_rows
from recipes.text_tokenizer import packaged, train_tokenizer

TEXTS = ["I have 1998 cats.", "She doesn't care.", "He has a cat, too."]
PAIR = [Sentence([10, 11], [0, 1]), Sentence([12], [0])]


def test_every_text_comes_back_even_of_letters_never_seen() -> None:
    tokenizer = train_tokenizer(TEXTS, 300)
    for text in (*TEXTS, "Łódź 東京 🙂", "  two  blanks"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    tokens = tokenizer.encode("A cat has 1998 cats.").tokens
    assert tokens[-6:-2] != ["\u01201998"]
    assert "9" in tokens
    assert tokens[-1] == "."


def test_two_texts_are_told_apart_by_who_fills_gaps_and_go_on_for_who_writes() -> None:
    tokenizer = train_tokenizer(TEXTS, 300)
    cat = tokenizer.encode("cat").ids
    packed = packaged(tokenizer, ends=True, limit=64)("cat", "cat")
    assert packed["input_ids"] == [1, *cat, 2, *cat, 2]
    assert packed["token_type_ids"] == [0] * (len(cat) + 2) + [1] * (len(cat) + 1)
    assert packaged(tokenizer, ends=False, limit=64)("cat")["input_ids"] == [1, *cat]


def test_the_pieces_of_a_word_have_its_number() -> None:
    tokenizer = train_tokenizer(TEXTS, 261)  # hardly any merges
    (found,) = encode(tokenizer, ["mm cq."])
    assert found.words == [0, 0, 0, 1, 1, 1, 2]


def test_a_pair_in_a_row() -> None:
    apart = collate(PAIR, [(0, 1)], stop_between=True)
    assert apart.ids.tolist() == [[1, 10, 11, 2, 12, 2]]
    assert apart.segments.tolist() == [[0, 0, 0, 0, 1, 1]]
    assert apart.words.tolist() == [[-1, 0, 1, -1, 1000, -1]]
    on = collate(PAIR, [(0, 1), (1,)], stop_between=False)
    assert on.ids.tolist() == [[1, 10, 11, 12, 2], [1, 12, 2, 0, 0]]
    assert on.segments.sum() == 0


@settings(max_examples=30)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=60), st.integers(0, 5), st.floats(0, 1))
def test_every_sentence_once_in_batches_that_fit(lengths: list[int], seed: int, in_pairs: float) -> None:
    sentences = [Sentence([9] * n, list(range(n))) for n in lengths]
    plan = plan_rows(sentences, 64, seed, in_pairs)
    assert plan == plan_rows(sentences, 64, seed, in_pairs)
    assert sorted(i for rows in plan for row in rows for i in row) == list(range(len(lengths)))
    for rows in plan:
        assert len(rows) == 1 or collate(sentences, rows, stop_between=True).ids.numel() <= 64


def test_words_are_hidden_whole_and_special_tokens_never() -> None:
    words = torch.tensor([[-1, 0, 0, 1, 2, 2, 2, -1]] * 4000)
    batch = TextBatch(
        torch.full_like(words, 20).masked_fill(words < 0, SPECIAL["</s>"]), words, torch.zeros_like(words)
    )
    given, hidden = hide_words(batch, 50, torch.Generator().manual_seed(0))
    assert not hidden[:, [0, 7]].any()
    assert torch.equal(hidden[:, 1], hidden[:, 2])
    assert torch.equal(hidden[:, 4], hidden[:, 6])
    assert not torch.equal(hidden[:, 1], hidden[:, 3])
    assert torch.equal(given[~hidden], batch.ids[~hidden])
    assert abs(float(hidden[:, 3].float().mean()) - 0.25) < 0.03, "drawn evenly from 0.1 to 0.4"
    assert abs(float((given[hidden] == SPECIAL["<mask>"]).float().mean()) - 0.8) < 0.03
    assert given.min() >= 0
    assert int((given[hidden] == SPECIAL["<pad>"]).sum()) == 0
