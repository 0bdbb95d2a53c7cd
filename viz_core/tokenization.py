"""Text to tokens and back: cleaning, one BPE vocabulary for both languages, tokens as people read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"
WORD_START = "\u2581"  # what a metaspace tokenizer puts where a word begins

# Zero-width characters, soft hyphens and other invisible formatting; tabs and newlines are spaces.
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
# Pieces a reader sees as words of their own: elided French words (j', qu'), English
# contractions ('s, n't), single digits and punctuation.
_PIECES = (
    rf"(?i){WORD_START}?(?<![\p{{L}}])(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)'(?=\p{{L}})"
    rf"|(?<=\p{{L}})(?:n't|'(?:s|m|re|ve|ll|d))(?![\p{{L}}'])"
    rf"|{WORD_START}?[^\p{{L}}\p{{N}}\s'{WORD_START}]|{WORD_START}?\p{{N}}"
)


@dataclass(frozen=True)
class SpecialTokens:
    """Ids that mean something to decoding."""

    pad: int
    bos: int
    eos: int


def special_tokens(tokenizer: Tokenizer) -> SpecialTokens:
    """The ids of padding, beginning and end."""
    return SpecialTokens(*(tokenizer.token_to_id(token) for token in (PAD, BOS, EOS)))


def clean(text: str) -> str:
    """NFKC, plain spaces for French ones, straight apostrophes; no invisible or control characters."""
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    text = _INVISIBLE.sub("", text)
    text = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
    return " ".join(text.split())


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Byte-pair encoding (Sennrich 2016) over cleaned text; ids 0 to 3 are padding, beginning, end, unknown."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNK))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=[PAD, BOS, EOS, UNK], min_frequency=2)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def readable(token: str) -> str:
    """A token as people read it: without the mark of a word's start."""
    return token.removeprefix(WORD_START) or "\u00b7"
