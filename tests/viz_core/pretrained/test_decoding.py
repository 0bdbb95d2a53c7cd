"""Greedy and beam search against slower searches that cannot be wrong, and what the card of a model says of it."""

import math
import random
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.pretrained import Translator, load
from viz_core.pretrained.bleu import book_bleu
from viz_core.pretrained.decoding import PRUNED, Candidate, beam_search, greedy_search
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.tokenization import SpecialTokens, clean

PAD, BOS, EOS = 0, 1, 2
SPECIAL = SpecialTokens(pad=PAD, bos=BOS, eos=EOS)
VOCAB = 6
WORDS = range(EOS, VOCAB)  # what a sentence may hold: the end and three words

Rule = Callable[[int, tuple[int, ...]], list[float]]  # source and tokens so far -> logits of the next


class Prefix(NamedTuple):
    source: Tensor
    ids: Tensor

    def select(self, rows: Tensor) -> "Prefix":
        return Prefix(self.source[rows], self.ids[rows])


class Scripted(nn.Module):
    """A decoder that says what a rule says; its only cache is what was written so far."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    def init_state(self, source: Tensor, valid_lens: Tensor) -> Prefix:
        return Prefix(source[:, 0], torch.zeros(len(source), 0, dtype=torch.long))

    def forward(self, tokens: Tensor, state: Prefix) -> tuple[Tensor, Prefix]:
        ids = torch.cat([state.ids, tokens], dim=1)
        pairs = zip(state.source.tolist(), ids.tolist(), strict=True)
        logits = torch.tensor([self.rule(source, tuple(row[1:])) for source, row in pairs])
        return logits[:, None], Prefix(state.source, ids)


class Echo(nn.Module):
    def forward(self, source: Tensor, valid_lens: Tensor) -> Tensor:
        return source


def scripted(rule: Rule) -> EncoderDecoder:
    return EncoderDecoder(Echo(), Scripted(rule))


def noise(source: int, prefix: tuple[int, ...]) -> list[float]:
    """Logits as irregular as can be, the same each time they are asked for."""
    draw = random.Random(f"{source}{prefix}")
    return [draw.gauss(0, 1.5) for _ in range(VOCAB)]


def log_p(rule: Rule, source: int, prefix: tuple[int, ...]) -> dict[int, float]:
    logits = rule(source, prefix)
    log_z = math.log(sum(math.exp(logits[t]) for t in WORDS))
    return {t: logits[t] - log_z for t in WORDS}


def search_with(
    search: Callable[..., list[list[int]]], model: EncoderDecoder, sources: list[int], *rest: object
) -> list:
    source = torch.tensor(sources)[:, None]
    return search(model, source, torch.ones(len(sources), dtype=torch.long), SPECIAL, *rest)


def transformer(seed: int) -> EncoderDecoder:
    """A random model whose sentences end now and then."""
    torch.manual_seed(seed)
    sizes = (9, 8, 12, 2, 2, 0.0)
    model = EncoderDecoder(TransformerEncoder(*sizes), TransformerDecoder(*sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.6)
    return model


def sources(batch: int = 6, n: int = 5) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(11)
    lengths = torch.randint(1, n + 1, (batch,), generator=draw)
    ids = torch.randint(3, 9, (batch, n), generator=draw)
    return ids.masked_fill(torch.arange(n) >= lengths[:, None], PAD), lengths


# Greedy


@torch.no_grad()
def test_greedy_is_the_argmax_of_whole_passes() -> None:
    model = transformer(0)
    source, lengths = sources()
    found = greedy_search(model, source, lengths, SPECIAL, 12)
    for row in range(len(source)):
        ids: list[int] = []
        while len(ids) < 12 and EOS not in ids:
            logits = model(source[row : row + 1], torch.tensor([[BOS, *ids]]), lengths[row : row + 1])[0, -1]
            logits[[PAD, BOS]] = -math.inf
            ids.append(int(logits.argmax()))
        assert found[row] == ids


def test_rows_end_by_themselves() -> None:
    """Row n says n words and ends; padding and a second beginning are never said, however likely."""

    def rule(source: int, prefix: tuple[int, ...]) -> list[float]:
        wanted = EOS if len(prefix) == source else 3 + len(prefix) % 3
        return [99.0, 98.0, *(1.0 if t == wanted else 0.0 for t in WORDS)]

    assert search_with(greedy_search, scripted(rule), [0, 1, 5, 2], 4) == [[2], [3, 2], [3, 4, 5, 3], [3, 4, 2]]
    assert search_with(beam_search, scripted(rule), [0, 1, 5, 2], 4, 1, 0.0) == [[2], [3, 2], [3, 4, 5, 3], [3, 4, 2]]


@pytest.mark.parametrize("search", [greedy_search, beam_search])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_max_new_tokens_cuts(search: Callable[..., list[list[int]]], limit: int) -> None:
    def endless(source: int, prefix: tuple[int, ...]) -> list[float]:
        return [0.0, 0.0, -50.0, 0.0, 1.0, 0.0]

    assert search_with(search, scripted(endless), [0, 0], limit) == [[4] * limit] * 2


# Beam


def plain_beam_search(rule: Rule, source: int, max_length: int, beam: int, length_penalty: float) -> list[int]:
    """Wu 2016 on Python lists, without batches, without a cache and without stopping early.

    Of the best continuations as many stay as there are places; one that ends takes its place with it.
    """
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ended: list[tuple[float, tuple[int, ...]]] = []
    for _ in range(max_length):
        longer = [(s + p, (*prefix, t)) for s, prefix in live for t, p in log_p(rule, source, prefix).items()]
        best = sorted(longer, reverse=True)[: beam - len(ended)]
        ended += [(s, prefix) for s, prefix in best if prefix[-1] == EOS]
        live = [(s, prefix) for s, prefix in best if prefix[-1] != EOS]
    return list(max(ended + live, key=lambda one: one[0] / ((5 + len(one[1])) / 6) ** length_penalty)[1])


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_narrow_beam_equals_the_search_on_plain_lists(beam: int, length_penalty: float) -> None:
    found = search_with(beam_search, scripted(noise), list(range(40)), 6, beam, length_penalty)
    assert found == [plain_beam_search(noise, source, 6, beam, length_penalty) for source in range(40)]


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("source", range(3))
def test_candidates_are_those_of_the_search_on_plain_lists(beam: int, source: int) -> None:
    steps: list[list[Candidate]] = []
    X, lengths = torch.tensor([[source]]), torch.tensor([1])
    found = beam_search(scripted(noise), X, lengths, SPECIAL, 6, beam, candidates_of=steps)
    assert found == beam_search(scripted(noise), X, lengths, SPECIAL, 6, beam), "listing them changes nothing"
    before: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    width, live = beam, [0]
    for step in steps:
        longer = [(s + p, (*y, t)) for s, y in (before[i] for i in live) for t, p in log_p(noise, source, y).items()]
        expected = sorted(longer, reverse=True)[: width + PRUNED]
        assert [each.log_probability for each in step] == pytest.approx([s for s, _ in expected], abs=1e-4)
        assert [(*before[each.parent][1], each.token) for each in step] == [y for _, y in expected]
        assert [each.in_beam for each in step] == [rank < width for rank in range(len(step))]
        before = [(each.log_probability, y) for each, (_, y) in zip(step, expected, strict=True)]
        live = [i for i, each in enumerate(step) if each.in_beam and each.token != EOS]
        width -= sum(each.in_beam and each.token == EOS for each in step)


@torch.no_grad()
@pytest.mark.parametrize("beam", [None, 1, 4])
@pytest.mark.parametrize("seed", range(2))
def test_the_logits_kept_are_those_of_one_pass_over_what_was_found(seed: int, beam: int | None) -> None:
    model, (source, lengths) = transformer(seed), sources()
    logits_of: list[Tensor] = []
    if beam is None:
        found = greedy_search(model, source, lengths, SPECIAL, 12, logits_of)
    else:
        found = beam_search(model, source, lengths, SPECIAL, 12, beam, logits_of=logits_of)
    for row, (ids, logits) in enumerate(zip(found, logits_of, strict=True)):
        forced = torch.tensor([[BOS, *ids[:-1]]])
        once = model(source[row : row + 1], forced, lengths[row : row + 1])[0]
        torch.testing.assert_close(logits, once, atol=1e-5, rtol=1e-5)


# Batches


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_a_batch_do_not_influence_each_other(seed: int) -> None:
    model, (source, lengths) = transformer(seed), sources()
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    for search in (greedy_search, beam_search):
        together = search(model, source, lengths, SPECIAL, 10)
        mixed = search(model, source[order], lengths[order], SPECIAL, 10)
        assert mixed == [together[i] for i in order]
        for row, n in enumerate(lengths.tolist()):
            alone = search(model, source[row : row + 1, :n], lengths[row : row + 1], SPECIAL, 10)
            assert alone == [together[row]]


NAME = "transformer-en-fr"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load(NAME)


@pytest.mark.parametrize("sample", sentences()[:4], ids=lambda sample: sample.id)
def test_the_books_four_sentences_are_right(translator: Translator, sample: object) -> None:
    english, references = sample.english, sample.references  # type: ignore[attr-defined]
    found = translator.translate(english).text
    assert max(book_bleu(clean(found).lower().split(), clean(r).lower().split()) for r in references) == 1.0


@pytest.mark.parametrize("name", [NAME, "bahdanau-en-fr", "seq2seq-en-fr"])
def test_it_does_with_the_books_own_strings_what_its_card_says(name: str) -> None:
    model = load(name)
    strings = model.card.training["book_strings"]
    assert list(strings) == ["go .", "i lost .", "he's calm .", "i'm home ."]
    for english, french in strings.items():
        assert model.translate(english).text == french
        assert f"| {english} | {french} |" in model.card.text
    assert 0 < model.card.scores["bleu_lower_case"] < model.card.scores["bleu_greedy"]
