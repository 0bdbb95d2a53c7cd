"""Train a shipped model, or repeat a run of the book: python -m recipes NAME --data DIR --out DIR.

Importance of each head: python -m recipes head-importance NAME --data DIR.
Word alignment of each head: python -m recipes alignments NAME.
Translation quality by sentence length: python -m recipes by-length --data DIR.
Calibration of a classifier: python -m recipes calibration NAME --data DIR.
Copying of unseen numbers and names: python -m recipes copying NAME --data DIR.
Counts of words in the training data: python -m recipes word-counts NAME --data DIR.
The book's exercises on its GRU with attention: python -m recipes book-variants --data DIR.
The recorded runs of the learning chapter: python -m recipes learning --out DIR.
Small runs that answer exercises of the book: python -m recipes exercises --data DIR.
A controlled comparison of a GRU with and without attention: python -m recipes alike --data DIR --out DIR.
Every measure of every head, for the chapter on heads: python -m recipes head-scans [NAME ...].
The same of any model over a file of texts: python -m recipes scan MODEL --texts FILE --out FILE.
The drawn sample pictures: python -m recipes sample-pictures.
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
    head_scans,
    sample_pictures,
    scan,
    text_models,
    translators,
    word_counts,
)
from recipes import task_recordings as task_recording
from recipes.loop import RunOptions
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
    "scan": scan.main,
    "head-scans": head_scans.main,
    "sample-pictures": sample_pictures.main,
}
TRAINERS = {
    **{name: partial(translators.train, name) for name in translators.TRANSLATORS},
    **{name: partial(classifiers.train, name) for name in classifiers.CLASSIFIERS},
    **{name: partial(text_models.train, name) for name in text_models.TEXT_MODELS},
}


def count(text: str) -> int:
    """Parse a positive integer.

    Raises:
        ArgumentTypeError: if it is smaller than 1.
    """
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {text}")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
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
            run = RunOptions(chosen.out, device, chosen.minutes, chosen.resume)
            TRAINERS[chosen.name](chosen.data, run, chosen.epochs, **more)
    except (ValueError, OSError) as error:
        print(f"cannot train {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
