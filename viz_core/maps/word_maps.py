"""Words that tokens are pieces of, and maps between words."""

import re
from collections.abc import Sequence
from unicodedata import category

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_tensors

_STARTS = ("\u2581", "\u0120", " ")  # SentencePiece, byte-level BPE, plain
_CONTINUES = "##"  # WordPiece
_APOSTROPHES = ("'", "\u2019")
_ENDS, _GOES_ON = "</w>", "@@"  # of the piece before: BPE of CLIP and of subword-nmt
# A byte, as <0xE2>, is a piece like any other, and so is an atom in brackets, as [NH2].
_SPECIAL = re.compile(r"<(?!0x[0-9A-F]{2}>)[^<>\s]+>|\[(?:CLS|SEP|PAD|MASK|UNK|BOS|EOS|INST|unused)\d*\]")
# Tokens that separate or end, as the common tokenizers write them.
SEPARATORS = re.compile(r"\[SEP\]|</s>|<eos>|<sep>|<\|endoftext\|>|<\|im_end\|>|<\|eot_id\|>|<end_of_turn>")


def separators(tokens: Sequence[str]) -> tuple[int, ...]:
    """Places of the tokens that separate or end ("[SEP]", "</s>", "<eos>" and their like)."""
    return tuple(i for i, token in enumerate(tokens) if SEPARATORS.fullmatch(token))


def punctuation(tokens: Sequence[str]) -> tuple[int, ...]:
    """Places of the tokens that are punctuation and nothing else (Unicode's categories P)."""
    return tuple(i for i, token in enumerate(tokens) if token and all(category(c)[0] == "P" for c in token))


def is_word(token: str) -> bool:
    """Whether a token is a word or a piece of one: has a letter or digit and is not a special token."""
    return any(c.isalnum() for c in token) and not _SPECIAL.fullmatch(token)


def word_numbers(pieces: Sequence[str]) -> tuple[int, ...]:
    """Return the number of the word that each piece belongs to, counted from 0.

    Tokenizers mark either where a word goes on ("##ing", "pho@@"), where one starts ("▁the", "Ġthe") or where one ends
    ("to</w>"); whichever mark is there is followed. Special tokens and signs are words of their own, but for an
    apostrophe within a word where word starts are marked; without any mark every piece is. Give pieces of the
    vocabulary: readable tokens have lost their marks.
    """
    if any(_ends_word(piece) or (len(piece) > 2 and piece.endswith(_GOES_ON)) for piece in pieces):
        return _numbers_by_ends(pieces)
    continues = any(piece.startswith(_CONTINUES) for piece in pieces)
    starts = not continues and any(piece.startswith(_STARTS) for piece in pieces)
    numbers: list[int] = []
    alone = True  # whether the piece before lets nothing join it
    for i, piece in enumerate(pieces):
        text = piece.lstrip("".join(_STARTS))
        sign = bool(_SPECIAL.fullmatch(text)) or not any(c.isalnum() for c in text)
        joins = piece.startswith(_CONTINUES) if continues else starts and not piece.startswith(_STARTS)
        joins = joins and not alone and not (sign and not continues)
        if starts and not alone and piece in _APOSTROPHES and pieces[i + 1 : i + 2] and pieces[i + 1][:1].isalpha():
            sign, joins = False, True  # within a word: don't
        numbers.append(0 if not numbers else numbers[-1] + (not joins))
        alone = bool(_SPECIAL.fullmatch(text)) or (sign and bool(text))
    return tuple(numbers)


def _ends_word(piece: str) -> bool:
    return piece.endswith(_ENDS) and len(piece) > len(_ENDS)


def _numbers_by_ends(pieces: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of words where a mark on a piece says whether the word ends with it or goes on."""
    with_ends, numbers, joins = any(map(_ends_word, pieces)), list[int](), False
    for piece in pieces:
        special = _SPECIAL.fullmatch(piece) is not None
        numbers.append(0 if not numbers else numbers[-1] + (special or not joins))
        joins = not special and (not piece.endswith(_ENDS) if with_ends else piece.endswith(_GOES_ON))
    return tuple(numbers)


def merge_words(
    weights: Float[Tensor, "*batch queries keys"], query_words: Sequence[int], key_words: Sequence[int]
) -> Float[Tensor, "*batch query_words key_words"]:
    """Map between words: rows of pieces averaged, columns summed, so that rows sum to 1.

    W_ab = mean_(i in word a) sum_(j in word b) w_ij (Clark 2019, section 4.1).

    Raises:
        ValueError: if weights are not a floating-point tensor, there is not one word for each query and key, or the
            numbers do not count up from 0.
    """
    check_tensors(weights=weights)
    check_axes("... queries keys", weights=weights)
    sizes = tuple(weights.shape[-2:])
    if sizes != (len(query_words), len(key_words)):
        raise ValueError(f"expected words for {sizes} queries and keys, got {len(query_words)} and {len(key_words)}")
    for name, numbers in (("query_words", query_words), ("key_words", key_words)):
        if sorted(set(numbers)) != list(range(max(numbers, default=-1) + 1)):
            raise ValueError(f"{name}: expected numbers that count up from 0, got {sorted(set(numbers))[:8]}")
    rows, columns = (  # 1 where a token belongs to a word
        (torch.arange(max(words, default=-1) + 1)[:, None] == torch.tensor(words)).to(weights)
        for words in (query_words, key_words)
    )
    return (rows / rows.sum(dim=1, keepdim=True)) @ weights @ columns.T
