"""Try a tokenizer on texts that slow ones cannot take. A limited process runs it, so it imports little."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tokenizers import Tokenizer

GROWTH = 32
"""How many characters a normalizer may make of one: of Unicode's own forms at most 18 (U+FDFA in NFKC)."""

_LENGTH = 2000  # characters of a trial: a million steps for what grows with the square of it
_SAMPLE = "The quick brown fox; 42, naïve. 猫はいる\n"
_UNITS = (_SAMPLE, "a", "A", "1", " ", "\n", "a ", "a1", "é", "'s", ".", "_", "aA")
_NAMED = 40  # words and characters
_ENDS = ("", "!", "\0")  # of which a pattern fits some, and tries all ways to fit the others
_PARTS = ("normalizer", "pre_tokenizer", "decoder", "post_processor")
_TEXTS = ("String", "Regex", "content", "prepend", "prefix", "suffix", "replacement")


def try_tokenizer(content: bytes) -> bytes:
    """Load a tokenizer.json, and encode and decode long and named texts.

    Returns:
        b"grows" if a text grows by `GROWTH`, b"gives up" if a pattern takes too many steps; b"" for a good tokenizer.
    """
    tokenizer = Tokenizer.from_buffer(content)
    named = {text for part in _PARTS for text in _texts(json.loads(content).get(part))}
    words = {word for text in named for word in re.findall(r"\w+|[^\w\s]", text)}
    units = dict.fromkeys((*_UNITS, *sorted(named), *sorted(words)[:_NAMED], *sorted(set("".join(named)))[:_NAMED]))
    for unit in units:
        for text in (unit, *(unit * max(1, _LENGTH // len(unit)) + end for end in _ENDS)):
            try:
                if _grows(tokenizer, text):
                    return b"grows"
            except BaseException:  # the library panics, which is not an Exception
                return b"gives up"
    return b""


def try_pattern(content: bytes, flags: int) -> bytes:
    """Find all matches of a pattern in long texts; b"" once that is done."""
    pattern = re.compile(content.decode(), flags)
    for unit in dict.fromkeys((*_UNITS, *re.findall(r"\w|[^\w\s]", pattern.pattern)[:_NAMED])):
        for end in _ENDS:
            pattern.sub("", unit * max(1, _LENGTH // len(unit)) + end)
    return b""


def _grows(tokenizer: Tokenizer, text: str) -> bool:
    normalized = text if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(text)
    if len(normalized) > GROWTH * len(text) + 100:
        return True
    tokens = tokenizer.encode(text).tokens
    return tokenizer.decoder is not None and len(tokenizer.decoder.decode(tokens)) > GROWTH * len(text) + 1000


def _texts(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str) and key in _TEXTS and value:
        yield re.sub(r"\\[pP]\{.*?\}", "", value)[:200] or "a"
