"""English sentences as rows of tokens: one or two in a row, batches of like length, words hidden in them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

PAD, START, STOP, MASK = "<pad>", "<s>", "</s>", "<mask>"
SPECIAL = {PAD: 0, START: 1, STOP: 2, MASK: 3}
"""Their ids, in this order."""


class Sentence(NamedTuple):
    """The tokens of a sentence, and the number of the word that each is a piece of."""

    ids: list[int]
    words: list[int]


class TextBatch(NamedTuple):
    """Texts padded to one length."""

    ids: Int[Tensor, "batch tokens"]
    words: Int[Tensor, "batch tokens"]  # -1 for special tokens
    segments: Int[Tensor, "batch tokens"]  # 1 for the second of two sentences, and its end

    def to(self, device: torch.device) -> TextBatch:
        """The same on another device."""
        return TextBatch(*(t.to(device, non_blocking=True) for t in self))


def encode(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[Sentence]:
    """Each sentence's tokens, without special ones."""
    found = tokenizer.encode_batch(list(sentences), add_special_tokens=False)
    return [Sentence(each.ids, [-1 if word is None else word for word in each.word_ids]) for each in found]


def plan_rows(
    sentences: Sequence[Sentence], tokens: int, seed: int | None = None, in_pairs: float = 0.25
) -> list[list[tuple[int, ...]]]:
    """Which sentences share a row, and which rows a batch: texts of like length, at most `tokens` a batch with padding.

    With a seed in random order, and so often two in a row that this share of the rows are pairs; without, each alone.
    """
    order = list(range(len(sentences)))
    mix = random.Random(seed)
    rows: list[tuple[int, ...]] = []
    if seed is not None:
        mix.shuffle(order)
    while order:
        count = 2 if seed is not None and mix.random() < in_pairs else 1
        rows.append(tuple(order[-count:]))
        del order[-count:]

    def length(row: tuple[int, ...]) -> int:
        return 1 + sum(len(sentences[i].ids) + 1 for i in row)

    rows.sort(key=length)
    batches: list[list[tuple[int, ...]]] = [[]]
    for row in rows:  # the longest so far
        if batches[-1] and length(row) * (len(batches[-1]) + 1) > tokens:
            batches.append([])
        batches[-1].append(row)
    if seed is not None:
        mix.shuffle(batches)
    return [batch for batch in batches if batch]


def collate(sentences: Sequence[Sentence], rows: Sequence[tuple[int, ...]], stop_between: bool) -> TextBatch:
    """Rows as a batch: <s> A </s>, or <s> A </s> B </s>; without `stop_between` <s> A B </s>, one text that goes on."""
    ids, words, segments = [], [], []
    for row in rows:
        own, pieces, part = [SPECIAL[START]], [-1], [0]
        for number, i in enumerate(row):
            sentence = sentences[i]
            ends = [SPECIAL[STOP]] if stop_between or number == len(row) - 1 else []
            own += [*sentence.ids, *ends]
            pieces += [*(1000 * number + word for word in sentence.words), *(-1 for _ in ends)]
            part += [number * stop_between] * (len(sentence.ids) + len(ends))
        ids.append(torch.tensor(own))
        words.append(torch.tensor(pieces))
        segments.append(torch.tensor(part))
    return TextBatch(
        pad_sequence(ids, batch_first=True, padding_value=SPECIAL[PAD]),
        pad_sequence(words, batch_first=True, padding_value=-1),
        pad_sequence(segments, batch_first=True),
    )


def hide_words(
    batch: TextBatch, vocabulary_size: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch tokens"], Bool[Tensor, "batch tokens"]]:
    """Whole words hidden, as in BERT (Devlin 2019, section 3.1): each with a chance drawn per row, between 0.1 and 0.4.

    Of the hidden words eight tenths become <mask>, a tenth other tokens, and a tenth stay.

    Returns:
        What the model is given, and which tokens it must name.
    """
    rows, tokens = batch.ids.shape
    share = 0.1 + 0.3 * torch.rand(rows, 1, generator=generator)
    _, own = batch.words.unique(return_inverse=True)  # a word's pieces have one number, and one draw
    draws = torch.rand(2, rows, int(own.max()) + 1, generator=generator)
    hidden = (draws[0].gather(1, own) < share) & (batch.words >= 0)
    fate = draws[1].gather(1, own)
    other = torch.randint(len(SPECIAL), vocabulary_size, (rows, tokens), generator=generator)
    given = batch.ids.masked_fill(hidden & (fate < 0.8), SPECIAL[MASK])
    return torch.where(hidden & (fate >= 0.9), other, given), hidden
