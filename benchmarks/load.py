"""Many visitors at once, each typing sentences of their own, each checking that the maps are those of these sentences.

`make load` sends 100 visitors with three sentences each to the hosted server, started on this machine.
"""

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks import report
from benchmarks.__main__ import PARTS
from benchmarks.report import Row
from benchmarks.sampling import MB, Tree
from benchmarks.serving import HOSTED, Server, running
from benchmarks.view_bytes import decode_view
from benchmarks.visitors import Shown, Visitor, visit
from viz_core.pretrained import Translator, load_translator

CHAPTER, LINE, MODEL = "transformer", "An English sentence", "transformer-en-fr"
ROUNDING = 1e-5
TIMEZONE = "Europe/Paris"  # a class sits before browsers: each is sent what stands in its window, as in a real one
TIMEOUT = 600.0  # seconds for one answer
LATE, CPU = 4.0, 0.045  # seconds: the targets for 100 visitors on two cores
MESSAGES = 45  # a third of the 135 that an answer took when each redrew its page
NEWCOMER = 2.0  # times a first page in peace
FLOOR = "benchmarks/peers/typed.py"
_FLOOR = "a Streamlit page with as many elements and no work"
A_SECOND = 8.0  # answers
_SUBJECTS = ("The cat", "My father", "The old dog", "Our teacher", "A little girl", "The train", "Her brother")
_VERBS = ("is here", "was late", "likes the sea", "has a book", "works at home", "saw the moon", "came back")
_WHENS = ("today", "yesterday", "again", "at last", "every day", "with me", "too", "alone")


def sentences() -> Iterator[str]:
    """Return sentences that are unique to a visitor."""
    return (" ".join(words) + "." for words in itertools.product(_SUBJECTS, _VERBS, _WHENS))


@dataclass(frozen=True)
class Answer:
    """One typed sentence and what came back."""

    text: str
    seconds: float
    retries: int
    view: bytes | None  # as it was sent, to be checked when all is over
    error: str | None
    messages: int = 0
    size: int = 0  # of the messages, in bytes


async def converse(visitor: Visitor, text: str) -> Answer:
    """Type a sentence; where the server says it is busy, try again as its page offers."""
    begun, retries = time.perf_counter(), 0
    try:
        async with asyncio.timeout(TIMEOUT):
            shown = await visitor.type(LINE, text)
            while "Try again" in shown.buttons:
                retries += 1
                shown = await visitor.click("Try again")
    except (OSError, TimeoutError, KeyError) as error:
        return Answer(text, time.perf_counter() - begun, retries, None, f"{type(error).__name__}: {error}")
    return Answer(text, time.perf_counter() - begun, retries, *_seen(shown), shown.messages, shown.size)


def _seen(shown: Shown) -> tuple[bytes | None, str | None]:
    if shown.failed or len(shown.views) != 1:
        return None, ", ".join([*shown.failed, *shown.alerts]) or f"{len(shown.views)} views on the page"
    return shown.views[0], None


@dataclass(frozen=True)
class Spent:
    """What a server needed for all answers together."""

    seconds: float  # of the clock, from when all had opened the chapter to the last answer
    cpu_seconds: float  # of the server and its workers
    memory: tuple[float, float]  # of both in MB, before and after
    others: float  # load average of this machine before
    first_pages: tuple[tuple[float, ...], tuple[float, ...]]  # seconds of newcomers, in peace and under load


async def visitors(server: Server, count: int, each: int, chapter: str = CHAPTER) -> tuple[list[Answer], Spent]:
    """So many visitors at once, each with so many sentences, beginning when all have opened the chapter."""
    own, together, used = sentences(), asyncio.Barrier(count + 1), Tree(server.pid)
    before, others = used.memory() / MB, os.getloadavg()[0]
    begun: list[tuple[float, float]] = []
    texts = [list(itertools.islice(own, each)) for _ in range(count)]

    async def newcomer() -> float:
        start = time.perf_counter()
        async with visit(server.url, TIMEOUT, TIMEZONE) as visitor, asyncio.timeout(TIMEOUT):
            await visitor.open(chapter)
        return time.perf_counter() - start

    async def newcomers() -> list[float]:
        await together.wait()
        return [await newcomer() for _ in range(3)]

    async def one(mine: Sequence[str]) -> list[Answer]:
        async with visit(server.url, TIMEOUT, TIMEZONE) as visitor:
            async with asyncio.timeout(TIMEOUT):
                while LINE not in (await visitor.open(chapter)).inputs:
                    pass
            await together.wait()
            if not begun:
                begun.append((time.perf_counter(), used.cpu_seconds()))
            return [await converse(visitor, text) for text in mine]

    await newcomer()  # the first of all on a new server, who waits for its imports
    peace = tuple([await newcomer() for _ in range(5)])
    loaded = asyncio.create_task(newcomers())
    answers = list(itertools.chain.from_iterable(await asyncio.gather(*map(one, texts))))
    seconds, cpu_seconds = time.perf_counter() - begun[0][0], used.cpu_seconds() - begun[0][1]
    first_pages = peace, tuple(await loaded)
    return answers, Spent(seconds, cpu_seconds, (before, used.memory() / MB), others, first_pages)


def cost(answers: Sequence[Answer], spent: Spent) -> float:
    """Return the processor seconds of one answer."""
    return spent.cpu_seconds / len(answers)


def wrong(answer: Answer, model: Translator) -> str | None:
    """What is wrong with the maps of an answer; None where they are those of its sentence."""
    assert answer.view is not None
    made, view = model.translate(answer.text), decode_view(answer.view)
    groups = {group["id"]: group for group in view.header["base"]["groups"][0]}
    tokens = (groups["cross"]["key_tokens"], groups["cross"]["query_tokens"])
    if tokens != (list(made.source_tokens), list(made.target_tokens)):
        return f"{answer.text!r} came with the tokens of {tokens}"
    calls = {f"{call.stack}-{call.kind}" if call.kind == "self" else call.kind: [] for call in made.trace}
    for call in made.trace:
        calls[f"{call.stack}-{call.kind}" if call.kind == "self" else call.kind].append(call)
    maps = {name: part for name, part in view.parts.items() if name.startswith("map ")}
    for name, part in maps.items():
        group, head = name.removeprefix("map 0.").split(":")[:2]
        layer, number = map(int, head.split("."))
        error = float((calls[group][layer].weights(head=number)[0] - part).abs().max())
        if error > ROUNDING:
            return f"{answer.text!r}: {name} differs by {error:.2g}"
    return None if maps else f"{answer.text!r} came without a map"


def load_rows(
    count: int, answers: Sequence[Answer], mistakes: int, spent: Spent, floor: float, processes: int = 1
) -> list[Row]:
    """What the visitors met: errors and wrong answers, of which there must be none, seconds, and what it cost.

    Args:
        count: visitors at once.
        answers: all they got.
        mistakes: so many were not theirs.
        spent: by the server.
        floor: processor seconds for one answer of a page without work.
        processes: of pages.
    """
    about = f"{count} visitors at once, {len(answers):,} answers{', two processes' if processes == 2 else ''}"
    errors = sum(answer.error is not None for answer in answers)
    seconds = sorted(answer.seconds for answer in answers)
    late = seconds[max(0, -(-95 * len(seconds) // 100) - 1)]
    (before, after), (peace, loaded) = spent.memory, spent.first_pages
    return [
        Row(f"{about}: errors", "answers", (errors,), target=0),
        Row(f"{about}: wrong answers", "answers", (mistakes,), target=0),
        Row(f"{about}: told to try again", "times", (sum(answer.retries for answer in answers),)),
        Row(f"{about}: sentence to maps", "s", tuple(seconds)),
        Row(f"{about}: 95% of sentences to maps", "s", (late,), target=LATE),
        Row(f"{about}: one answer every", "s", (spent.seconds / len(answers),), target=1 / A_SECOND),
        Row(f"{about}: processor's time for one", "s", (cost(answers, spent),), _FLOOR, (floor,), CPU),
        Row(f"{about}: messages of one", "messages", tuple(answer.messages for answer in answers), target=MESSAGES),
        Row(f"{about}: bytes of one", "kB", tuple(answer.size / 1e3 for answer in answers)),
        Row(f"{about}: a newcomer's first page", "s", loaded, "in peace", peace, NEWCOMER, relative=True),
        Row(f"{about}: cores kept busy by the server", "cores", (spent.cpu_seconds / spent.seconds,)),
        Row(f"{about}: load average of the machine before", "processes", (spent.others,)),
        Row(f"{about}: memory of the server", "MB", (after,), "before", (before,)),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--visitors", type=int, default=100)
    parser.add_argument("--sentences", type=int, default=3, help="that each of them types")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], choices=[1, 2], help="of pages, in turn")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    model = load_translator(MODEL, device="cpu")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), FLOOR) as server:
        floor = cost(*asyncio.run(visitors(server, options.visitors, options.sentences, "")))
    rows: list[Row] = []
    problems: list[str] = []
    for processes in options.processes:
        settings = {"ATLAS_PROCESSES": str(processes)}
        with tempfile.TemporaryDirectory() as folder, running(Path(folder), HOSTED, settings) as server:
            answers, spent = asyncio.run(visitors(server, options.visitors, options.sentences))
        checked = {answer: answer.error or wrong(answer, model) for answer in answers}
        mistakes = sum(answer.error is None and found is not None for answer, found in checked.items())
        rows += load_rows(options.visitors, answers, mistakes, spent, floor, processes)
        problems += [found for found in checked.values() if found]
    print(report.table(rows))
    for problem in problems[:10]:
        print(f"  {problem}")
    report.save("load", rows)
    report.write(PARTS)
    if not all(row.met for row in rows if row.target == 0):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
