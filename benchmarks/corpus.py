"""A corpus through a model: the time and memory of all roles of all heads, of BERT with 6 layers of 12 heads."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.memory import MB, Peak
from benchmarks.random_models import save_bert
from benchmarks.report import Row
from benchmarks.serving import ROOT

QUICK = {"tokens": 200}
TOKENS = 100_000
SECONDS, MEGABYTES = 600.0, 1000.0  # of so many tokens; fewer may take as much less time, and as much memory
LENGTH = 20  # words of a sentence
AT_ONCE = 25  # sentences
VOCABULARY = [f"w{number}" for number in range(5000)]


def measure(tokens: int = TOKENS) -> list[Row]:
    """Seconds, and megabytes at the peak beyond the loaded model, in an interpreter that does nothing else.

    Raises:
        RuntimeError: if it fails.
    """
    command = [sys.executable, "-m", "benchmarks.corpus", str(tokens)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed: {answer.stderr[-500:]}")
    read, seconds, peak = json.loads(answer.stdout.splitlines()[-1])
    what = f"roles of 6 x 12 heads over a corpus of {read:,} tokens"
    memory = () if peak is None else (peak / MB,)
    return [
        Row(what, "s", (seconds,), target=SECONDS * tokens / TOKENS),
        Row(
            f"peak memory of it: {what}",
            "MB",
            memory,
            target=MEGABYTES,
            note="" if memory else "this system does not tell",
        ),
    ]


def _sentences(tokens: int) -> list[str]:
    """Sentences of made-up words, some of which come often; with both ends they have so many tokens."""
    draw, last = random.Random(0), len(VOCABULARY) - 1
    words = [VOCABULARY[min(draw.randint(0, last), draw.randint(0, last))] for _ in range(tokens)]
    return [" ".join(words[i : i + LENGTH]) for i in range(0, tokens * LENGTH // (LENGTH + 2), LENGTH)]


def _one_corpus(tokens: int) -> tuple[int, float, float | None]:
    """Tokens read, seconds, and bytes at the peak."""
    from serving.requests.corpus import NOTHING, read_sentences
    from viz_core.hub import load_hub

    texts, peak, found = _sentences(tokens), Peak(), NOTHING
    with tempfile.TemporaryDirectory() as folder:
        save_bert(Path(folder) / "bert", VOCABULARY)
        model = load_hub(Path(folder) / "bert", device="cpu")
    read_sentences(model, texts[:2])  # what a first pass alone needs is not the corpus's
    peak.start()
    begun = time.perf_counter()
    for first in range(0, len(texts), AT_ONCE):
        found = found + read_sentences(model, texts[first : first + AT_ONCE], first)
    return found.tokens, time.perf_counter() - begun, peak.stop()


if __name__ == "__main__":
    print(json.dumps(_one_corpus(int(sys.argv[1]))))
