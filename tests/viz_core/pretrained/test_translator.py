"""Translations: their tokens, maps, length and bad input."""

import copy
import dataclasses
import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from viz_core.pretrained import TextError, Translator
from viz_core.pretrained.tokenization import join_pieces
from viz_core.pretrained.translation import likeliest_others, word_probabilities
from viz_core.trace import Edit, intervene, off, uniform

SENTENCE = "The cat is on the bed."


@pytest.mark.parametrize("beam", [1, 4])
def test_tokens_and_maps_have_the_same_sides(translator: Translator, beam: int) -> None:
    result = translator.translate(SENTENCE, beam=beam)
    n, m = len(result.source_ids), len(result.target_ids)
    assert len(result.source_tokens) == n
    assert len(result.target_tokens) == len(result.decoder_tokens) == m
    assert result.source_tokens[-1] == "<eos>"
    assert "".join(result.source_tokens[:-1]).replace("·", "") == SENTENCE.replace(" ", "")
    assert result.decoder_tokens == ("<bos>", *result.target_tokens[:-1])
    names = "encoder.0.self encoder.1.self decoder.0.self decoder.0.cross decoder.1.self decoder.1.cross"
    assert result.trace.sites == tuple(names.split())
    sides = {"encoder.self": (n, n), "decoder.self": (m, m), "decoder.cross": (m, n)}
    for call in result.trace:
        weights = call.weights()
        assert tuple(weights.shape) == (1, 4, *sides[f"{call.stack}.{call.kind}"])
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5, rtol=0)
    assert result.trace["decoder.1.self"].weights().triu(1).max() == 0


def with_ending(translator: Translator, bias: float) -> Translator:
    """The same model, keener on ending."""
    model = copy.deepcopy(translator.model)
    model.decoder.dense.bias[translator.special.eos] += bias
    return dataclasses.replace(translator, model=model)


def test_an_ended_translation_is_complete_and_a_cut_one_is_not(translator: Translator) -> None:
    ended = with_ending(translator, 1e4).translate(SENTENCE)
    assert (ended.text, ended.target_tokens, ended.decoder_tokens) == ("", ("<eos>",), ("<bos>",))
    assert ended.complete
    cut = with_ending(translator, -1e4).translate(SENTENCE, max_new_tokens=5)
    assert len(cut.target_ids) == 5
    assert not cut.complete
    assert cut.text == translator.tokenizer.decode(list(cut.target_ids))


@pytest.mark.parametrize("text", ["The cat 😀", "The cat שלום", "\u202eThe cat\u202c猫"])
def test_unknown_among_known_is_counted(translator: Translator, text: str) -> None:
    result = translator.translate(text, max_new_tokens=2)
    assert result.num_unknown == result.source_tokens.count("<unk>") >= 1
    assert result.source_tokens[:2] == ("The", "cat")


@pytest.mark.parametrize(
    "text", ["<script>alert('the cat')</script>", "the cat \x00\x1b[31m is \x07 red", "<eos> the <pad> cat <bos>"]
)
def test_markup_is_text_like_any_other(translator: Translator, text: str) -> None:
    result = translator.translate(text, max_new_tokens=3)
    ids = result.source_ids
    assert ids[-1] == translator.special.eos
    assert not {translator.special.pad, translator.special.bos, translator.special.eos} & set(ids[:-1])
    assert result.trace["encoder.0.self"].num_keys == len(result.source_tokens)


@pytest.mark.parametrize(
    "edits", [{}, {"decoder.0.self": off(0), "decoder.1.cross": uniform(1)}], ids=["no edit", "edits"]
)
def test_texts_of_one_batch_have_the_maps_of_each_alone(translator: Translator, edits: dict[str, Edit]) -> None:
    texts = ["Go.", SENTENCE, "I like coffee, and the cat is on the bed with the red dog."]
    model, passes = copy.deepcopy(translator.model), list[object]()
    model.encoder.register_forward_hook(lambda *_: passes.append(None))
    with intervene(edits):
        together = dataclasses.replace(translator, model=model).translate_all(texts)
        each = [translator.translate(text) for text in texts]
    assert len(passes) == 1
    for found, alone in zip(together, each, strict=True):
        assert (found.text, found.made) == (alone.text, alone.made)
        assert found.log_probabilities == pytest.approx(alone.log_probabilities, abs=1e-5)
        assert found.cache_error < 1e-4
        assert found.trace.sites == alone.trace.sites
        assert edits or found.trace.nbytes < 1.1 * alone.trace.nbytes, "a text holds no others in memory"
        for call in found.trace:
            other = alone.trace[call.site]
            torch.testing.assert_close(call.weights(), other.weights(), atol=1e-6, rtol=0)
            assert torch.equal(call.key_mask, other.key_mask)
            assert torch.equal(call.query_mask, other.query_mask)


@pytest.mark.parametrize("beam", [1, 3])
def test_log_probabilities_are_the_terms_of_their_sum(translator: Translator, beam: int) -> None:
    result = translator.translate("The cat is on the bed.", max_new_tokens=6, beam=beam)
    assert len(result.log_probabilities) == len(result.target_ids)
    assert sum(result.log_probabilities) == pytest.approx(result.log_probability, abs=1e-4)
    source, target, valid_lens = translator.teacher_forced(result.source_ids, result.target_ids)
    log_p = translator.model(source, target, valid_lens)[0].log_softmax(dim=-1)
    expected = [float(log_p[i, token]) for i, token in enumerate(result.target_ids)]
    assert list(result.log_probabilities) == pytest.approx(expected, abs=1e-5)


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


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["▁ch", "at"], "chat"),
        (["▁", "<0xC5>", "<0xBD>", "i"], "Ži"),
        (["<0xC5>"], "\ufffd"),
        ([], "·"),
        (["<eos>"], "<eos>"),
    ],
)
def test_pieces_are_read_together(pieces: list[str], text: str) -> None:
    assert join_pieces(pieces) == text


NOTHING = "There is nothing to translate yet: type an English sentence."
UNKNOWN = "The model knows no word or sign in this text."
REFUSED: list[tuple[str, dict[str, int], str]] = [
    *((text, {}, NOTHING) for text in ("", "   ", "\t\n\r", "\u200b\u00ad", "\x00\x07\x1b", "\u202f\u00a0", "\ud800")),
    *((text, {}, UNKNOWN) for text in ("😀🎉", "👩‍👩‍👧", "שלום עולם", "\u202eשלום\u202c", "猫は静か", "!!!", "☃ ☂")),
    ("a" * 2001, {}, "This text has 2,001 characters; at most 2,000 can be translated."),
    ("3 " * 1000, {}, "This text has 1,000 tokens; the model takes at most 511."),
    *(("Go.", {"max_new_tokens": n}, f"max_new_tokens: expected 1 to 256, got {n}") for n in (0, -1, 257)),
    *(("Go.", {"beam": n}, f"beam: expected 1 to 16, got {n}") for n in (0, -1, 17)),
]


@pytest.mark.parametrize(("text", "options", "message"), REFUSED)
def test_what_cannot_be_translated(translator: Translator, text: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError if options else TextError, match=message):
        translator.translate(text, **options)


def test_the_longest_text_is_translated(translator: Translator) -> None:
    assert translator.translate("cat " * 500, max_new_tokens=1).num_unknown == 0
    assert len(translator.encode("3 " * 511)) == 512
