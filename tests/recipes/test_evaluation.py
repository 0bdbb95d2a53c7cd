"""Translations of many sentences in their order, and BLEU by length."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from recipes.evaluation import bleu_by_length, translate_all
from recipes.sentence_pairs import Pair
from viz_core.models import EncoderDecoder
from viz_core.pretrained import Translator
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.tokenization import SpecialTokens

CPU = torch.device("cpu")


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
