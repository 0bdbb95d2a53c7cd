"""Tokenization: cleaning, special tokens, readable tokens."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"
WORD_START = "\u2581"  # what a metaspace tokenizer puts where a word begins

# Unicode categories of invisible characters: zero-width, soft hyphens, direction marks; unpaired surrogates.
_INVISIBLE = {"Cf", "Cs"}
# A run of bytes that stand for letters the vocabulary lacks, as byte fallback names them.
_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of padding, beginning and end."""

    pad: int
    bos: int
    eos: int


def special_tokens(tokenizer: Tokenizer) -> SpecialTokens:
    """The ids of padding, beginning and end."""
    return SpecialTokens(*(token_id(tokenizer, token) for token in (PAD, BOS, EOS)))


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a token that must be there. ValueError if it is not."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise ValueError(f"expected the tokenizer to have {token!r}, got a vocabulary without it")
    return found


def clean(text: str) -> str:
    """NFKC, plain spaces for French ones, straight apostrophes; no invisible or control characters."""
    visible = "".join(c for c in text if unicodedata.category(c) not in _INVISIBLE)
    plain = unicodedata.normalize("NFKC", visible).replace("\u2019", "'")
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in plain).split())


def is_spelled(token: str) -> bool:
    """Whether a token is a byte of a letter that the vocabulary lacks.

    >>> is_spelled("<0xD7>"), is_spelled("the")
    (True, False)
    """
    return _BYTES.fullmatch(token) is not None


def book_tokens(text: str) -> list[str]:
    """Lower case, a blank before each of , . ! ? and then the words between blanks.

    (Dive into Deep Learning, section "Machine Translation and the Dataset", class MTFraEng.)
    """
    plain = text.lower().replace("\u202f", " ").replace("\xa0", " ")
    return [word for word in re.sub(r"(?<=[^ ])([,.!?])", r" \1", plain).split(" ") if word]


def readable(token: str) -> str:
    """Return a token without the mark of a word's start."""
    return token.removeprefix(WORD_START) or "\u00b7"


def join_pieces(pieces: Sequence[str]) -> str:
    """Join tokens to readable text: blanks where words start, bytes as the letters they encode."""
    spelled = "".join(pieces)
    for run in set(_BYTES.findall(spelled)):
        spelled = spelled.replace(run, bytes.fromhex(re.sub("<0x|>", "", run)).decode("utf-8", errors="replace"))
    return spelled.replace(WORD_START, " ").strip() or "\u00b7"


def whole_words(tokens: Sequence[str], numbers: Sequence[int] | None) -> list[str]:
    """Join the pieces of each word; letters that the vocabulary lacks are as typed.

    Args:
        numbers: of the word that each token is a piece of, from 0; every token is a word if None.
    """
    found: dict[int, list[str]] = {}
    for token, number in zip(tokens, numbers or range(len(tokens)), strict=True):
        found.setdefault(number, []).append(token)
    return [join_pieces(pieces).removeprefix("\u00b7") or "\u00b7" for pieces in found.values()]
