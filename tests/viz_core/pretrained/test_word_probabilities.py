"""Words of a translation: products over their tokens, rivals that share their beginning, sums that stay below 1."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.pretrained import Translator
from viz_core.pretrained.tokenization import join_pieces
from viz_core.pretrained.translation import WordProbability, likeliest_others, word_probabilities

LOG = math.log
PIECES = ["▁le", "▁ch", "at", "."]
WORDS = [0, 1, 1, 2]
LOG_P = [LOG(0.8), LOG(0.5), LOG(0.6), LOG(0.9)]
OTHERS = [
    [("▁un", LOG(0.1)), ("▁la", LOG(0.05))],
    [("▁ma", LOG(0.28)), ("▁to", LOG(0.2))],
    [("ien", LOG(0.3)), ("▁dort", LOG(0.1))],
    [("<eos>", LOG(0.06)), ("!", LOG(0.02))],
]


def test_words_and_rivals_by_hand() -> None:
    """chat: 0.5 x 0.6 = 0.3; chien: 0.5 x 0.3 = 0.15, behind ma (0.28) and to (0.2), before "ch dort" (0.05)."""
    le, chat, stop = word_probabilities(PIECES, WORDS, LOG_P, OTHERS)
    assert (le.text, chat.text, stop.text) == ("le", "chat", ".")
    assert (le.probability, chat.probability, stop.probability) == pytest.approx((0.8, 0.3, 0.9))
    assert [text for text, _ in chat.tokens] == ["ch", "at"]
    assert [p for _, p in chat.tokens] == pytest.approx([0.5, 0.6])
    assert [rival.text for rival in chat.rivals] == ["ma", "to", "chien", "ch dort"]
    assert [rival.probability for rival in chat.rivals] == pytest.approx([0.28, 0.2, 0.15, 0.05])
    assert [rival.text for rival in stop.rivals] == ["<eos>", "!"]
    assert [word.is_uncertain for word in (le, chat, stop)] == [False, True, False]
    assert len(word_probabilities(PIECES, WORDS, LOG_P, OTHERS, count=2)[1].rivals) == 2


@pytest.mark.parametrize(("p", "is_uncertain"), [(0.5, False), (0.4999, True), (1.0, False)])
def test_hesitating_begins_below_half(p: float, is_uncertain: bool) -> None:
    assert WordProbability("chat", p, (("chat", p),), ()).is_uncertain is is_uncertain


def test_the_likeliest_others_by_hand() -> None:
    log_p = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.15, 0.05]]).log()
    found = likeliest_others(log_p, [3, 0], never=[2], count=2)
    assert [[i for i, _ in step] for step in found] == [[1, 0], [1, 3]]
    assert [math.exp(p) for step in found for _, p in step] == pytest.approx([0.2, 0.1, 0.1, 0.05])
    assert [len(step) for step in likeliest_others(log_p, [3, 0], count=9)] == [3, 3]
    assert torch.equal(log_p, torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.15, 0.05]]).log()), "not written into"


@given(st.integers(0, 2**16), st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_word_and_its_rivals_never_add_up_to_more_than_one(seed: int, starts: list[bool]) -> None:
    """Held against every path of the same distributions, walked one by one."""
    generator = torch.Generator().manual_seed(seed)
    log_p = (3 * torch.randn(len(starts), 6, generator=generator)).log_softmax(dim=-1)
    written = torch.randint(6, (len(starts),), generator=generator).tolist()
    numbers = [sum(starts[1 : k + 1]) for k in range(len(starts))]
    others = [[(str(i), p) for i, p in step] for step in likeliest_others(log_p, written)]
    own = [float(row[i]) for row, i in zip(log_p, written, strict=True)]
    words = word_probabilities([str(i) for i in written], numbers, own, others)
    assert len(words) == numbers[-1] + 1
    for number, word in enumerate(words):
        places = [k for k, n in enumerate(numbers) if n == number]
        assert word.probability == pytest.approx(math.exp(sum(own[k] for k in places)))
        assert word.probability == pytest.approx(math.prod(p for _, p in word.tokens))
        assert word.probability + sum(rival.probability for rival in word.rivals) <= 1 + 1e-6
        assert all(a.probability >= b.probability for a, b in pairwise(word.rivals))
        every = [
            math.exp(sum(own[j] for j in places[:at]) + float(log_p[k, other]))
            for at, k in enumerate(places)
            for other in range(6)
            if other != written[k]
        ]
        assert [rival.probability for rival in word.rivals] == pytest.approx(sorted(every, reverse=True)[:5])


def test_a_translations_words_are_those_of_its_own_pass(translator: Translator) -> None:
    result = translator.translate("Where is the dog?", max_new_tokens=9)
    total = sum(math.log(word.probability) for word in result.words)
    assert total == pytest.approx(result.log_probability, abs=1e-4)
    assert sum(len(word.tokens) for word in result.words) == len(result.target_ids)
    assert len(result.words) == result.target_words[-1] + 1
    assert all(len(word.rivals) == 5 for word in result.words)
    assert not {"<pad>", "<bos>"} & {rival.text for word in result.words for rival in word.rivals}
    logits = translator.model(*translator.teacher_forced(result.source_ids, result.target_ids))[0]
    first = logits[0].softmax(dim=-1)
    first[[translator.special.pad, translator.special.bos, result.target_ids[0]]] = 0
    assert max(rival.probability for rival in result.words[0].rivals) >= float(first.max()) - 1e-5


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["▁ch", "at"], "chat"),
        (["▁est", "▁là"], "est là"),
        (["▁", "1", "2"], "12"),
        (["▁", "<0xC5>", "<0xBD>", "i"], "Ži"),
        (["<0xC5>"], "\ufffd"),
        (["▁"], "·"),
        ([], "·"),
        (["<eos>"], "<eos>"),
    ],
)
def test_pieces_are_read_together(pieces: list[str], text: str) -> None:
    assert join_pieces(pieces) == text
