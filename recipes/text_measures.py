"""How well a model of English does on sentences it never saw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from recipes.text_rows import SPECIAL, Sentence, collate, plan_rows

_TOKENS = 4096  # of a batch


class HiddenWord(NamedTuple):
    """A word of a sentence, to be named by who does not see it."""

    sentence: int
    places: tuple[int, ...]  # of its tokens


@torch.inference_mode()
def perplexity(model: Any, sentences: Sequence[Sentence], device: torch.device) -> float:
    """exp(-1/m sum_t ln p(w_t | w_<t)) over the m tokens of the sentences, their ends included, in float32."""
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


def _num_named(sentences: Sequence[Sentence]) -> int:
    return sum(len(each.ids) + 1 for each in sentences)
