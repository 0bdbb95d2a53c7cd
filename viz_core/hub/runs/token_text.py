"""Tokens as people read them: no byte-level artefacts, with word starts and special tokens marked."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from viz_core.pretrained.tokenization import WORD_START

SPACE = "·"
"""Stands for the space before a word, so that " the" and "the" look different."""

_SEEN = {"\n": "↵", "\r": "↵", "\t": "⇥"}
Scheme = Literal["bytes", "wordpiece", "metaspace", "suffix", "plain", "bare"]


@dataclass(frozen=True)
class Token:
    """One token of a text, or one patch of a picture.

    Attributes:
        id: in the vocabulary; -1 for a patch.
        text: what it stands for, without marks. A character that takes several tokens (an emoji, say) is
            the text of each of them.
        label: what a map writes beside its row: `text` with invisible characters shown, "·" before a word
            and "1/3" after a part of a character.
        starts_word: whether a word starts here.
        special: not part of the text: the tokenizer put it there.
    """

    id: int
    text: str
    label: str
    starts_word: bool = False
    special: bool = False


def token_words(tokens: Sequence[Token]) -> tuple[int, ...]:
    """The number of the word each token is a piece of; a special token is a word of its own."""
    numbers: list[int] = []
    after_special = True
    for token in tokens:
        starts = token.starts_word or token.special or after_special
        numbers.append(numbers[-1] + starts if numbers else 0)
        after_special = token.special
    return tuple(numbers)


class Reader:
    """Reads the ids of one tokenizer. Holds tables made at the start and nothing of a call; needs a lock around it
    where several threads share the tokenizer, for fast tokenizers are not thread-safe."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._scheme = _scheme(tokenizer)
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self._added = {number: str(token) for number, token in added.items()}
        self._special = {number for number, token in added.items() if token.special} | set(tokenizer.all_special_ids)

    def read(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Every token of a sequence. Neighbours count: a character may be cut into several tokens."""
        names = self._tokenizer.convert_ids_to_tokens(list(ids))
        if self._scheme == "bare":
            special = [number in self._special for number in ids]
            return tuple(
                Token(number, name, visible(name), starts_word=not marked, special=marked)
                for number, name, marked in zip(ids, names, special, strict=True)
            )
        tokens: list[Token] = []
        word_ended = True
        run: list[tuple[int, bytes, bool]] = []  # tokens whose bytes are not yet a whole character
        for number, name in zip(ids, names, strict=True):
            if number in self._special or number in self._added or name is None:
                tokens += [*_characters(run), self._added_token(number, name)]
                run, word_ended = [], True
                continue
            piece, starts = self._piece(name, word_ended)
            word_ended = name.endswith("</w>")
            if run and _state([*run, (number, piece, starts)]) == "broken":
                tokens += _characters(run)
                run = []
            run.append((number, piece, starts))
            if _state(run) != "open":
                tokens += _characters(run)
                run = []
        return tuple(tokens + _characters(run))

    def _added_token(self, number: int, name: str | None) -> Token:
        text = self._added.get(number, name or f"#{number}")
        return Token(number, text, visible(text), special=number in self._special or name is None)

    def _piece(self, name: str, word_ended: bool) -> tuple[bytes, bool]:
        """The bytes a vocabulary entry stands for, and whether a word starts with it."""
        if self._scheme == "bytes":
            table = _bytes_of_characters()
            piece = b"".join(bytes([table[c]]) if c in table else c.encode("utf-8", "replace") for c in name)
            return piece.removeprefix(b" "), piece.startswith(b" ")
        if self._scheme == "wordpiece":
            text = name.removeprefix("##")
            is_punctuation = unicodedata.category(text[:1] or " ")[0] in "PSZ"
            return text.encode("utf-8", "replace"), text == name and not is_punctuation
        if self._scheme == "suffix":
            return name.removesuffix("</w>").encode("utf-8", "replace"), word_ended
        if self._scheme == "metaspace":
            if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
                return bytes([int(name[3:5], 16)]), False
            text = name.removeprefix(WORD_START).replace(WORD_START, " ")
            return text.encode("utf-8", "replace"), name.startswith(WORD_START)
        return name.encode("utf-8", "replace"), True


def visible(text: str) -> str:
    """Make invisible characters visible: line ends and tabs as signs, others by their number."""
    if text.isspace():
        return "".join(_SEEN.get(c, "␣") for c in text)
    shown = "".join(_SEEN.get(c, c) for c in text)
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp") for c in shown) and not _joined(shown):
        shown = "".join(c if unicodedata.category(c)[0] not in "C" else f"U+{ord(c):04X}" for c in shown)
    return shown


def _joined(text: str) -> bool:
    """Whether its invisible characters are joiners between what can be seen, as in a family emoji."""
    hidden = {c for c in text if unicodedata.category(c)[0] == "C"}
    return hidden <= {"\u200d"} and not text.startswith("\u200d") and not text.endswith("\u200d")


def _state(run: Iterable[tuple[int, bytes, bool]]) -> Literal["whole", "open", "broken"]:
    """Whether these bytes are characters, the beginning of some, or nothing that more bytes could mend."""
    try:
        b"".join(piece for _, piece, _ in run).decode("utf-8")
    except UnicodeDecodeError as error:
        return "open" if error.reason == "unexpected end of data" else "broken"
    return "whole"


def _characters(run: list[tuple[int, bytes, bool]]) -> list[Token]:
    """Tokens that together are whole characters: one token as it is, several as parts of the same text."""
    content = b"".join(piece for _, piece, _ in run)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return [_stray(number, piece, starts) for number, piece, starts in run]
    if len(run) == 1:
        number, _, starts = run[0]
        label = f"{SPACE}{visible(text)}" if starts else visible(text) or SPACE
        return [Token(number, text, label, starts)]
    return [
        Token(number, text, f"{SPACE if starts else ''}{visible(text)} {i}/{len(run)}", starts)
        for i, (number, _, starts) in enumerate(run, start=1)
    ]


def _stray(number: int, piece: bytes, starts: bool) -> Token:
    """Bytes that are not a character, as a model may write them: "<F0 9F>"."""
    label = f"<{piece.hex(' ').upper()}>"
    return Token(number, piece.decode("utf-8", "replace"), f"{SPACE if starts else ''}{label}", starts)


def _scheme(tokenizer: Any) -> Scheme:
    """How this tokenizer's vocabulary spells spaces and bytes, from its decoder."""
    if hasattr(tokenizer, "scheme"):  # one of our own
        return tokenizer.scheme
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "decoder"):
        return "metaspace"  # those without a fast version are SentencePiece models
    if backend.decoder is None:
        return "plain"
    decoder = json.loads(backend.decoder.__getstate__())
    parts = [part.get("type") for part in decoder.get("decoders", [])] + [decoder.get("type")]
    names: dict[str, Scheme] = {
        "ByteLevel": "bytes",
        "WordPiece": "wordpiece",
        "BPEDecoder": "suffix",
        "Metaspace": "metaspace",
        "Replace": "metaspace",
        "ByteFallback": "metaspace",
        "Fuse": "bare",  # alone: pieces of one line without spaces, like SMILES
    }
    return next((scheme for name, scheme in names.items() if name in parts), "plain")


@lru_cache(maxsize=1)
def _bytes_of_characters() -> dict[str, int]:
    """The characters by which byte-level vocabularies write the 256 bytes (GPT-2's bytes_to_unicode, turned round)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
