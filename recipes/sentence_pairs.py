"""English-French sentence pairs: read or downloaded, cleaned, split by the English sentence."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recipes.download import fetch
from viz_core.pretrained.tokenization import clean

ARCHIVE_URL = "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip"
ARCHIVE_SHA1 = "94646ad1522d915e7b0f9296181140edcf86a4f5"
SOURCE = "English-French sentence pairs of the Tatoeba project, as packed by ManyThings/Anki (2019-04-07)"
LICENCE = "CC BY 2.0 (attribution: www.manythings.org/anki and tatoeba.org)"
HELD_OUT_PERCENT = 2  # for validation, and as much again for test


class Pair(NamedTuple):
    """A sentence and one translation of it, both cleaned."""

    english: str
    french: str


class Split(NamedTuple):
    """No English sentence stands in two parts, whatever its translations, capitals or spacing."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


def load_pairs(folder: Path) -> list[Pair]:
    """Clean pairs from fra.txt, fra.txt.gz or fra-eng.zip in `folder`; the public archive is fetched if none is there.

    Raises:
        ValueError: if a file is cut short, or the archive is not the one whose checksum is known.
        OSError: if there is no data and none can be downloaded.
    """
    return [pair for pair in map(_parse, read_text(folder).splitlines()) if pair.english and pair.french]


def split_pairs(pairs: Sequence[Pair]) -> Split:
    """About 96 / 2 / 2 percent, by a hash of the English sentence: the same on every machine, for ever."""
    split = Split([], [], [])
    for pair in pairs:
        digest = hashlib.sha256(pair.english.casefold().encode()).digest()
        percent = int.from_bytes(digest[:8], "big") % 100
        part = 1 if percent < HELD_OUT_PERCENT else 2 if percent < 2 * HELD_OUT_PERCENT else 0
        split[part].append(pair)
    return split


def group_references(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Every translation of each English sentence, in the order they come."""
    references: dict[str, list[str]] = {}
    for pair in pairs:
        references.setdefault(pair.english, []).append(pair.french)
    return references


def read_text(folder: Path) -> str:
    """The whole file, a pair a line, from fra.txt, fra.txt.gz or fra-eng.zip in `folder`, or the public archive.

    Raises:
        ValueError: if a file is cut short, or the archive is not the one whose checksum is known.
        OSError: if there is no data and none can be downloaded.
    """
    if (folder / "fra.txt").exists():
        return (folder / "fra.txt").read_text(encoding="utf-8")
    if (folder / "fra.txt.gz").exists():
        try:
            return gzip.decompress((folder / "fra.txt.gz").read_bytes()).decode("utf-8")
        except (EOFError, zlib.error) as error:
            raise ValueError(f"fra.txt.gz cannot be read, it may be cut short: {error}") from None
    archive = folder / "fra-eng.zip"
    content = fetch(ARCHIVE_URL, archive, ARCHIVE_SHA1, "sha1")
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        return opened.read("fra-eng/fra.txt").decode("utf-8")


def _parse(line: str) -> Pair:
    fields = line.split("\t")
    return Pair(clean(fields[0]), clean(fields[1])) if len(fields) > 1 else Pair("", "")
