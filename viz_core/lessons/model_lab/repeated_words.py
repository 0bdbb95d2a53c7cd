"""Repeated random words: nothing but the first time tells what comes the second time, so only induction helps."""

import re
from collections.abc import Sequence

import numpy as np

LENGTH = 25
"""Words of a run, as many as the random tokens of Olsson 2022 ("In-context Learning and Induction Heads")."""

RUNS = 20


def repeated_words(texts: Sequence[str], runs: int = RUNS, seed: int = 0) -> tuple[str, ...]:
    """Return runs of `LENGTH` different words drawn from these texts, each run followed by itself."""
    words = sorted({word for text in texts for word in re.findall(r"\b[a-z]{2,}\b", text)})
    if len(words) < LENGTH:
        raise ValueError(f"texts: expected at least {LENGTH} different words, got {len(words)}")
    draw = np.random.default_rng(seed)
    return tuple(" ".join(2 * draw.choice(words, LENGTH, replace=False).tolist()) for _ in range(runs))
