"""How familiar an input is to a shipped model: how often its words, and how unusual its pictures, were in training."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from viz_core.pretrained.checkpoint import read_tensors
from viz_core.pretrained.shipped import CheckpointError, ModelCard, parsing, read_bytes
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


FILE = "familiarity.safetensors"


@dataclass(frozen=True)
class Distance:
    """How far a picture is, and the distance that 95% of held-out pictures keep within."""

    value: float
    threshold: float

    @property
    def is_unfamiliar(self) -> bool:
        """Whether it is farther than nearly all of them."""
        return self.value > self.threshold


@dataclass(frozen=True)
class Familiarity:
    """Mean and spread of training pictures, each told by the mean of its patches after the last block."""

    mean: Float[Tensor, " d"]
    whitening: Float[Tensor, "d d"]
    threshold: float = math.inf  # the distance that 95% of held-out pictures keep within

    def distances(self, features: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Mahalanobis distances d(x) = sqrt((x - m)^T C^-1 (x - m)), for all classes together.

        (Lee 2018, "A Simple Unified Framework for Detecting Out-of-Distribution Samples", equation 2; with one mean for
        all classes, Kamoi and Kobayashi 2020, section 3.2.)
        """
        return ((features.float().cpu() - self.mean) @ self.whitening).norm(dim=-1)


def read_familiarity(card: ModelCard, folder: Path, num_hiddens: int) -> Familiarity | None:
    """What was measured of a model, or None. CheckpointError if its file is missing, truncated or of another model."""
    if "familiarity" not in card.training:
        return None
    tensors = read_tensors(folder / FILE)
    with parsing(folder / FILE):
        threshold = float(card.training["familiarity"]["threshold"])
        known = Familiarity(tensors["mean"], tensors["whitening"], threshold)
    if known.mean.shape != (num_hiddens,) or known.whitening.shape != (num_hiddens, num_hiddens):
        raise CheckpointError(
            "{file} does not fit the model: expected a width of {expected}, got {got}",
            file=FILE,
            expected=num_hiddens,
            got=str(tuple(known.mean.shape)),
        )
    return known
