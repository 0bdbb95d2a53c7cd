"""How well a model of English does on sentences it never saw, and how well a 5-gram does on the same tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from recipes.kneser_ney import KneserNey
from recipes.text_rows import SPECIAL, Sentence, collate, plan_rows

_TOKENS = 4096  # of a batch


class HiddenWord(NamedTuple):
    """A word of a sentence, to be named by who does not see it."""

    sentence: int
    places: tuple[int, ...]  # of its tokens


def five_gram(sentences: Sequence[Sentence], vocabulary_size: int) -> KneserNey:
    """The n-gram model of these sentences; nothing goes on to padding, a start or a mask."""
    never = [number for name, number in SPECIAL.items() if name != "</s>"]
    return KneserNey(map(whole, sentences), vocabulary_size, 5, never)


def whole(sentence: Sentence) -> list[int]:
    """Its tokens from start to end."""
    return [SPECIAL["<s>"], *sentence.ids, SPECIAL["</s>"]]


def five_gram_perplexity(model: KneserNey, sentences: Sequence[Sentence]) -> float:
    """exp(-1/m sum_t ln p(w_t | w_<t)) over the m tokens of the sentences, their ends included."""
    return math.exp(sum(model.nats(whole(each)) for each in sentences) / _num_named(sentences))


@torch.inference_mode()
def perplexity(model: Any, sentences: Sequence[Sentence], device: torch.device) -> float:
    """The same of a model that writes: each sentence by itself, in float32."""
    nats = 0.0
    for rows in plan_rows(sentences, _TOKENS):
        ids = collate(sentences, rows, stop_between=False).ids.to(device)
        logits = model(input_ids=ids[:, :-1]).logits.float()
        nats += float(F.cross_entropy(logits.mT, ids[:, 1:], ignore_index=SPECIAL["<pad>"], reduction="sum"))
    return math.exp(nats / _num_named(sentences))


def hidden_words(tokenizer: Tokenizer, sentences: Sequence[Sentence]) -> list[HiddenWord]:
    """Every word with a letter in it; marks and numbers are not words to be guessed."""
    found = []
    for number, sentence in enumerate(sentences):
        for word in dict.fromkeys(sentence.words):
            places = tuple(i for i, own in enumerate(sentence.words) if own == word)
            if any(c.isalpha() for c in tokenizer.decode([sentence.ids[i] for i in places])):
                found.append(HiddenWord(number, places))
    return found


@torch.inference_mode()
def filled(model: Any, sentences: Sequence[Sentence], words: Sequence[HiddenWord], device: torch.device) -> float:
    """Percent of words of which a masked encoder names every token, each word hidden alone and whole."""
    hidden = [
        sentences[s]._replace(ids=[SPECIAL["<mask>"] if i in places else t for i, t in enumerate(sentences[s].ids)])
        for s, places in words
    ]
    right = 0
    for rows in plan_rows(hidden, _TOKENS):
        batch = collate(hidden, rows, stop_between=True)
        inputs = {"input_ids": batch.ids, "attention_mask": batch.ids.ne(SPECIAL["<pad>"]).long()}
        best = model(**{name: tensor.to(device) for name, tensor in inputs.items()}).logits.argmax(dim=-1)
        for (number,), predicted in zip(rows, best.tolist(), strict=True):
            sentence, places = words[number]
            right += all(predicted[1 + i] == sentences[sentence].ids[i] for i in places)
    return 100 * right / len(words)


def five_gram_filled(model: KneserNey, sentences: Sequence[Sentence], words: Sequence[HiddenWord]) -> float:
    """Percent of words of which the n-gram model names every token from what stands to their left."""
    right = sum(all(_likeliest(model, sentences[s], i) == sentences[s].ids[i] for i in places) for s, places in words)
    return 100 * right / len(words)


def _likeliest(model: KneserNey, sentence: Sentence, place: int) -> int:
    return int(np.argmax(model.distribution([SPECIAL["<s>"], *sentence.ids[:place]])))


def _num_named(sentences: Sequence[Sentence]) -> int:
    return sum(len(each.ids) + 1 for each in sentences)
