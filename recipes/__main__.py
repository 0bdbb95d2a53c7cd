"""Train a shipped model, or repeat a run of the book: python -m recipes NAME --data DIR --out DIR.

What the heads of one that ships are worth: python -m recipes head-importance NAME --data DIR.
How well they align words: python -m recipes alignments NAME.
How well they do on test sentences of every length: python -m recipes by-length --data DIR.
How often a classifier is right when it is sure: python -m recipes calibration NAME --data DIR.
Whether a translator copies numbers and names it never saw: python -m recipes copying NAME --data DIR.
In how many training sentences each word stood: python -m recipes word-counts NAME --data DIR.
The book's exercises on its GRU with attention: python -m recipes book-variants --data DIR.
The small runs that the learning chapter shows: python -m recipes learning --out DIR.
Those that answer exercises of the book: python -m recipes exercises --data DIR.
What attention adds to a GRU, all else alike: python -m recipes alike --data DIR --out DIR.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from recipes import (
    alignments,
    book,
    book_variants,
    by_length,
    calibration,
    classifiers,
    controlled_comparison,
    copying,
    exercises,
    head_importance,
    text_models,
    translators,
    word_counts,
)
from recipes import task_recordings as task_recording
from viz_core.runtime.device import best_device, describe_device

MEASURES = {
    "head-importance": head_importance.main,
    "alignments": alignments.main,
    "by-length": by_length.main,
    "calibration": calibration.main,
    "learning": task_recording.main,
    "copying": copying.main,
    "word-counts": word_counts.main,
    "book-variants": book_variants.main,
    "exercises": exercises.main,
    "alike": controlled_comparison.main,
}
TRAINERS = {
    **{name: partial(translators.train, name) for name in translators.TRANSLATORS},
    **{name: partial(classifiers.train, name) for name in classifiers.CLASSIFIERS},
    **{name: partial(text_models.train, name) for name in text_models.TEXT_MODELS},
}


def count(text: str) -> int:
    """A number from 1 on, as the command line writes it.

    Raises:
        ArgumentTypeError: if it is smaller; argparse says so.
    """
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {text}")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Train what the command line names; 0 if that went well, 1 if it could not be done, with the reason on stderr."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in MEASURES:
        return MEASURES[given[0]](given[1:])
    parser = argparse.ArgumentParser(prog="python -m recipes", description=__doc__)
    parser.add_argument("name", choices=sorted({*TRAINERS, *book.RUNS}), help="the model to train")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint, curves, scores and card")
    parser.add_argument("--epochs", type=count, help="passes over the data, instead of the recipe's")
    shipped = parser.add_argument_group("models that ship")
    shipped.add_argument("--minutes", type=float, help="stop, decayed to the end, after so many minutes of training")
    shipped.add_argument("--resume", action="store_true", help="go on from OUT/last.pt")
    shipped.add_argument("--start-from", metavar="NAME", help="begin with the weights of this translator that ships")
    runs = parser.add_argument_group("the book's runs")
    runs.add_argument("--seed", type=int, nargs="+", help="train once with each, side by side in the card")
    runs.add_argument("--limit", type=count, help="so many examples to train on, for a first look")
    chosen = parser.parse_args(given)
    for option, folder in (("--data", chosen.data), ("--out", chosen.out)):
        if folder.exists() and not folder.is_dir():
            parser.error(f"{option}: expected a folder, got the file {folder}")
    is_book_run = chosen.name in book.RUNS
    for option in ("minutes", "resume") if is_book_run else ("seed", "limit"):
        if getattr(chosen, option) is not parser.get_default(option):
            parser.error(f"--{option} is not for {chosen.name}")
    if chosen.start_from and chosen.name not in translators.TRANSLATORS:
        parser.error(f"--start-from is not for {chosen.name}")
    more = {"start_from": chosen.start_from} if chosen.start_from else {}
    try:
        device = best_device()
        print(f"training {chosen.name} on {describe_device(device)}", flush=True)
        if is_book_run:
            book.RUNS[chosen.name](chosen.data, chosen.out, device, chosen.epochs, chosen.seed or (0,), chosen.limit)
        else:
            TRAINERS[chosen.name](chosen.data, chosen.out, device, chosen.minutes, chosen.epochs, chosen.resume, **more)
    except (ValueError, OSError) as error:
        print(f"cannot train {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
