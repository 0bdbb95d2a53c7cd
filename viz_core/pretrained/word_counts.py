"""Rare words of a translator: in how many training sentences each word and number occurs."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from viz_core.pretrained.card import parsing, read_bytes
from viz_core.pretrained.tokenization import clean
from viz_core.runtime.assets import ASSETS

COUNTS = "words.json"
FEW = 5  # sentences: a word in fewer is rare
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True)
class WordCounts:
    """Number of training sentences with each word; counts of `FEW` and more are not distinguished.

    Words are counted as they are written, for that is how the model reads them: "cat" and "Cat" are two.
    """

    sentences: int
    counts: Mapping[str, int]  # 1 to FEW, which stands for any larger number

    def rare_words(self, text: str) -> tuple[tuple[str, int], ...]:
        """Return the words of a text that occur in fewer than `FEW` sentences, each once, in order, with counts."""
        found = {word: self.counts.get(word, 0) for word in words_of(text)}
        return tuple((word, count) for word, count in found.items() if count < FEW)

    @classmethod
    def from_json(cls, text: str) -> "WordCounts":
        """Return the counts in a file: {"sentences": number, "words": {count: words with blanks between them}}.

        ValueError if it is not such a text.
        """
        try:
            content = json.loads(text)
            counts = {word: int(count) for count, words in content["words"].items() for word in words.split()}
            return cls(int(content["sentences"]), counts)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"expected counts of words, got {error!r}") from None


def words_of(text: str) -> list[str]:
    """The words and numbers of a text, without signs; apostrophes within a word belong to it."""
    return _WORD.findall(clean(text))


def word_counts(name: str, folder: Path | None = None) -> WordCounts | None:
    """Return the word counts of a shipped translator, None where there are none. CheckpointError if unreadable."""
    path = (folder or ASSETS / "checkpoints") / name / COUNTS
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache(maxsize=4)
def _read(path: Path, _modified: int) -> WordCounts:
    with parsing(path):
        return WordCounts.from_json(read_bytes(path).decode("utf-8"))
