"""Tokenization: cleaning, one BPE vocabulary for both languages, readable tokens."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"
WORD_START = "\u2581"  # what a metaspace tokenizer puts where a word begins

# Unicode categories of invisible characters: zero-width, soft hyphens, direction marks; unpaired surrogates.
_INVISIBLE = {"Cf", "Cs"}
# A run of bytes that stand for letters the vocabulary lacks, as byte fallback names them.
_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")
# Pieces a reader sees as words of their own: elided French words (j', qu'), English
# contractions ('s, n't), single digits and punctuation.
_PIECES = (
    rf"(?i){WORD_START}?(?<![\p{{L}}])(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)'(?=\p{{L}})"
    rf"|(?<=\p{{L}})(?:n't|'(?:s|m|re|ve|ll|d))(?![\p{{L}}'])"
    rf"|{WORD_START}?[^\p{{L}}\p{{N}}\s'{WORD_START}]"
)


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
    """The id of a token that must be there.

    Raises:
        ValueError: if it is not.
    """
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


def train_tokenizer(texts: Iterable[str], vocab_size: int, byte_fallback: bool = False) -> Tokenizer:
    """Byte-pair encoding (Sennrich 2016) over cleaned text; ids 0 to 3 are padding, beginning, end, unknown.

    Args:
        vocab_size: how many tokens there may be, but for those of bytes.
        byte_fallback: letters that no text had are spelled by their UTF-8 bytes, 256 more tokens, and a digit is the
            same token wherever it stands, so that there is nothing that cannot be copied.
    """
    digit = r"\p{N}" if byte_fallback else rf"{WORD_START}?\p{{N}}"
    tokenizer = Tokenizer(models.BPE(unk_token=UNK))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Split(Regex(f"{_PIECES}|{digit}"), behavior="isolated")]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=[PAD, BOS, EOS, UNK], min_frequency=2)
    tokenizer.train_from_iterator(texts, trainer)
    return _with_bytes(tokenizer) if byte_fallback else tokenizer


def _with_bytes(tokenizer: Tokenizer) -> Tokenizer:
    """The same with a token for the blank, each digit and each byte, <0x00> to <0xFF>; what it lacks comes last.

    No merge makes them: they stand for letters that the vocabulary lacks, and for nothing else.
    """
    content = json.loads(tokenizer.to_str())
    vocab = content["model"]["vocab"]
    for token in (WORD_START, *"0123456789", *(f"<0x{byte:02X}>" for byte in range(256))):
        vocab.setdefault(token, len(vocab))
    content["model"]["byte_fallback"] = True
    content["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, content["decoder"]]}
    return Tokenizer.from_str(json.dumps(content))


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
