"""The book's sentence pairs: the first few hundred lines, in lower case, a token a word, all of one length.

(Dive into Deep Learning, section 10.5, class MTFraEng.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch

from recipes.batches import PairBatch
from viz_core.pretrained.tokenization import BOS, EOS, PAD, UNK, SpecialTokens, book_tokens

NUM_TRAIN, NUM_VALIDATION = 512, 129  # the book counts from 0 up to 512 + 128, so it reads one line more
NUM_STEPS = 9  # every sentence is cut or padded to so many tokens, its end included
MIN_COUNT = 2  # a word met less often is "<unk>"
BOOK_SIZES = (194, 214)  # of the two vocabularies, from the whole archive


@dataclass(frozen=True)
class Vocabulary:
    """Words by number, in alphabetical order; unknown words have the number of "<unk>"."""

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word: its place in alphabetical order, from 0."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """The number of each word, that of "<unk>" for words it does not have."""
        return [self.numbers.get(word, self.numbers[UNK]) for word in words]

    def decode(self, numbers: Iterable[int]) -> str:
        """The words with blanks between them, up to the end of the sentence."""
        words = [self.words[number] for number in numbers]
        return " ".join(words[: words.index(EOS)] if EOS in words else words)

    @property
    def special(self) -> SpecialTokens:
        """The numbers of padding, beginning and end."""
        return SpecialTokens(*(self.numbers[token] for token in (PAD, BOS, EOS)))


class BookPairs(NamedTuple):
    """The book's training data: both vocabularies, and pairs as numbers."""

    source_words: Vocabulary
    target_words: Vocabulary
    train: PairBatch
    validation: PairBatch


def prepare(text: str, num_train: int = NUM_TRAIN) -> BookPairs:
    """The book's training and validation pairs from the text of fra.txt.

    Both vocabularies are built from all of them, after sentences were cut to NUM_STEPS tokens and padded.

    Args:
        num_train: pairs to train on; the lines after them, a quarter as many, are for validation.

    Raises:
        ValueError: if num_train < 1, or the text has no pair beyond those to train on.
    """
    if num_train < 1:
        raise ValueError(f"expected at least 1 pair to train on, got {num_train}")
    num_pairs = num_train + max(1, num_train * NUM_VALIDATION // NUM_TRAIN)
    rows = [line.split("\t") for line in text.split("\n", num_pairs)[:num_pairs]]
    rows = [row for row in rows if len(row) > 1]
    if len(rows) <= num_train:
        raise ValueError(f"expected more than {num_train} sentence pairs, got {len(rows)}")
    sources = [pad_or_trim(tokenize(row[0])) for row in rows]
    targets = [[BOS, *pad_or_trim(tokenize(row[1]))] for row in rows]
    source_words, target_words = build_vocabulary(sources), build_vocabulary(targets)
    source = torch.tensor([source_words.encode(tokens) for tokens in sources])
    target = torch.tensor([target_words.encode(tokens) for tokens in targets])
    pairs = PairBatch(source, (source != source_words.numbers[PAD]).sum(dim=1), target)
    train, validation = (
        PairBatch(*(part[rows] for part in pairs)) for rows in (slice(num_train), slice(num_train, None))
    )
    return BookPairs(source_words, target_words, train, validation)


def tokenize(text: str) -> list[str]:
    """The book's tokens of a text, with "<eos>" at the end."""
    return [*book_tokens(text), EOS]


def pad_or_trim(tokens: Sequence[str]) -> list[str]:
    """Pad or cut to NUM_STEPS tokens."""
    return [*tokens[:NUM_STEPS], *[PAD] * (NUM_STEPS - len(tokens))]


def build_vocabulary(sentences: Iterable[Sequence[str]]) -> Vocabulary:
    """The tokens met MIN_COUNT times or more, and "<unk>"."""
    counts = Counter(token for tokens in sentences for token in tokens)
    return Vocabulary(tuple(sorted({UNK, *(token for token, count in counts.items() if count >= MIN_COUNT)})))
