"""In how many training sentences each English word stood: python -m recipes word-counts NAME --data DIR.

Written as words.json beside the checkpoint, for the note on words that a translator hardly saw, and told in its card.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from recipes.files import record
from recipes.sentence_pairs import Pair, group_references, load_pairs, split_pairs
from viz_core.pretrained import CHECKPOINTS, load_translator
from viz_core.pretrained.word_counts import COUNTS, FEW, WordCounts, words_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes word-counts", description=__doc__)
    parser.add_argument("name", help="the model, a translator")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="folder in which the model's folder lies")
    chosen = parser.parse_args(arguments)
    try:
        load_translator(chosen.name, "cpu", chosen.checkpoints)
        record_word_counts(split_pairs(load_pairs(chosen.data)).train, chosen.checkpoints / chosen.name)
    except (ValueError, OSError) as error:
        print(f"cannot count the words of {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0


def record_word_counts(train: Sequence[Pair], folder: Path) -> None:
    """Count the English of the training pairs, each sentence once, and write it beside the checkpoint."""
    counts = count_words(group_references(train))
    (folder / COUNTS).write_text(as_json(counts), encoding="utf-8")
    measured = {
        "sentences": counts.sentences,
        "different": len(counts.counts),
        "hardly_seen": sum(count < FEW for count in counts.counts.values()),
    }
    record(folder, {"words": measured}, word_section(measured))


def count_words(sentences: Iterable[str]) -> WordCounts:
    """Return in how many sentences each word is; one that holds a word twice counts once."""
    counts, number = Counter[str](), 0
    for sentence in sentences:
        counts.update(set(words_of(sentence)))
        number += 1
    return WordCounts(number, {word: min(FEW, count) for word, count in counts.items()})


def as_json(counts: WordCounts) -> str:
    """Return the file that `WordCounts.from_json` reads: words by their count, so that it stays small."""
    by_count = {
        str(count): " ".join(sorted(word for word, own in counts.counts.items() if own == count))
        for count in range(1, FEW + 1)
    }
    return json.dumps({"sentences": counts.sentences, "words": by_count}, indent=1, ensure_ascii=False) + "\n"


def word_section(measured: dict[str, Any]) -> str:
    """Return the section of the card."""
    return f"""## Words

The {measured["sentences"]:,} English sentences that it was trained on hold {measured["different"]:,} different words
and numbers, as they are written, capitals and all. Of these {measured["hardly_seen"]:,} stand in fewer than {FEW}
sentences. {COUNTS} has all of them, by the number of sentences they stand in, from {FEW} on together.
"""
