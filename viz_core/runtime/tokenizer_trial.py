"""Try a tokenizer on texts that slow ones cannot take. A limited process runs it, so it imports little."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tokenizers import Regex, Tokenizer, pre_tokenizers

GROWTH = 32
"""How many characters a normalizer may make of one: of Unicode's own forms at most 18 (U+FDFA in NFKC)."""

_LENGTH = 1000
_SAMPLE = "The quick brown fox; 42, naïve. 猫はいる\n"
_PARTS = ("normalizer", "pre_tokenizer", "decoder", "post_processor")
_TEXTS = ("String", "Regex", "content", "prepend", "prefix", "suffix", "replacement")


def try_tokenizer(content: bytes) -> bytes:
    """Load a tokenizer.json, and encode and decode long and named texts; return b"grows" if one grows by `GROWTH`."""
    tokenizer = Tokenizer.from_buffer(content)
    named = {text for part in _PARTS for text in _texts(json.loads(content).get(part))}
    for unit in dict.fromkeys((_SAMPLE, "a", " ", *sorted(named), *sorted(set("".join(named)))[:100])):
        for text in (unit, unit * max(1, _LENGTH // len(unit))):
            normalized = text if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(text)
            if len(normalized) > GROWTH * len(text) + 100:
                return b"grows"
            tokens = tokenizer.encode(text).tokens
            if tokenizer.decoder is not None and len(tokenizer.decoder.decode(tokens)) > GROWTH * len(text) + 1000:
                return b"grows"
    return b""


def try_patterns(content: bytes) -> bytes:
    """Split every text by every pattern, of a JSON list of both."""
    patterns, texts = json.loads(content)
    for pattern in patterns:
        split = pre_tokenizers.Split(Regex(pattern), "isolated")
        for text in texts:
            split.pre_tokenize_str(text)
    return b""


def _texts(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str) and key in _TEXTS and value:
        yield re.sub(r"\\[pP]\{.*?\}", "", value)[:200] or "a"
