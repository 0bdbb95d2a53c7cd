"""What a server's memory does over a thousand interactions of visitors who come and go.

    python -m benchmarks.growth        1,000 interactions with the hosted server on this machine

The first hundred fill what fills once: models, libraries, each kind of page. From then on it should stay.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import readme
from benchmarks.load import CHAPTER, LINE, sentences
from benchmarks.memory import MB, resident
from benchmarks.report import Row, save
from benchmarks.serving import HOSTED, running
from benchmarks.tables import text_table
from benchmarks.visitors import visit

FIRST, ALL = 100, 1000
MOST = 50.0  # MB
CACHE = {"ATLAS_CACHE_MB": "8"}  # it fills within the first hundred, and then has to let go
_CHAPTERS = ("home", "bahdanau", "attention-pooling", "scoring-functions", "multi-head", "sinusoidal-encoding")
_STAY = 10  # interactions of one visitor


async def interact(url: str, pid: int, first: int, total: int) -> list[tuple[int, float]]:
    """Visitors one after the other, each with ten interactions; memory after every `first` of all."""
    own, others = itertools.cycle(sentences()), itertools.cycle(_CHAPTERS)
    readings: list[tuple[int, float]] = []
    done = 0
    while done < total:
        async with visit(url) as visitor:
            shown = await visitor.open(CHAPTER)
            for turn in range(_STAY - 2):
                if LINE not in shown.inputs:  # the first page of a new server loads twice
                    shown = await visitor.open(CHAPTER)
                shown = await visitor.type(LINE, f"{next(own)[:-1]} {done + turn}.")
            await visitor.open(next(others))
        done += _STAY
        if done % first == 0:
            readings.append((done, resident(pid)))
            print(f"{done:>6} interactions: {readings[-1][1] / MB:.0f} MB", flush=True)
    return readings


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--first", type=int, default=FIRST, help="interactions before which memory may grow")
    parser.add_argument("--all", type=int, default=ALL)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), HOSTED, CACHE) as ours:
        readings = asyncio.run(interact(ours.url, ours.pid, options.first, options.all))
    what = f"{options.all:,} interactions: growth after the first {options.first}"
    row = Row(what, "MB", ((readings[-1][1] - readings[0][1]) / MB,), target=MOST)
    print(text_table([row]))
    save("growth", [row])
    readme.write()
    if not row.met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
