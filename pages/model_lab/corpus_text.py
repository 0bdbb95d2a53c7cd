"""Sentences of a corpus: uploaded, one per line, or random words that come twice."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

import numpy as np

from viz_core.hub.runs.tokenizers import clean_text
from viz_core.hub.store.checks import HubError

LENGTH = 25
"""Words of a run, as many as the random tokens of Olsson 2022 ("In-context Learning and Induction Heads")."""

RUNS = 20


def sentences_of(content: bytes, most_bytes: int, most: int) -> tuple[tuple[str, ...], int]:
    """The first sentences of a file, one per line, and the number of those that follow.

    UTF-8, or UTF-16 where it says so at its beginning; control characters and empty lines are dropped.

    Args:
        most_bytes: that the file may have.
        most: sentences that are taken.
    """
    if len(content) > most_bytes:
        raise HubError(
            "This file has {count:,} bytes; at most {most:,} can be read here. Send a part of it.",
            count=len(content),
            most=most_bytes,
        )
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise HubError("This file is no text in UTF-8. Save it as plain text in UTF-8, one sentence a line.") from None
    if "\0" in text:
        raise HubError("This file is no plain text. Save it as plain text in UTF-8, one sentence a line.")
    lines = [line for line in (clean_text(line).strip() for line in text.splitlines()) if line]
    if not lines:
        raise HubError("This file holds no sentence. One a line is expected.")
    return tuple(lines[:most]), max(0, len(lines) - most)


def repeated_words(texts: Sequence[str], runs: int = RUNS, seed: int = 0) -> tuple[str, ...]:
    """Runs of `LENGTH` different words drawn from these texts, each run followed by itself: only induction helps."""
    words = sorted({word for text in texts for word in re.findall(r"\b[a-z]{2,}\b", text)})
    draw = np.random.default_rng(seed)
    return tuple(" ".join(2 * draw.choice(words, LENGTH, replace=False).tolist()) for _ in range(runs))
