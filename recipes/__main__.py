"""Train a shipped model: python -m recipes NAME --data DIR --out DIR.

Importance of each head: python -m recipes head-importance NAME --data DIR.
Word alignment of each head: python -m recipes alignments NAME.
Copying of unseen numbers and names: python -m recipes copying NAME --data DIR.
Counts of words in the training data: python -m recipes word-counts NAME --data DIR.
What each head of a translator does: python -m recipes head-table NAME.
Its self-attention on one sentence, drawn: python -m recipes head-picture NAME.
What rests on its marks: python -m recipes marks NAME.
The recorded runs of the learning chapter: python -m recipes learning --out DIR.
Every measure of every head, for the chapter on heads: python -m recipes head-scans [NAME ...].
Atom maps of each head against maps made by hand: python -m recipes atom-maps --golden FILE.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from recipes import (
    alignments,
    atom_maps,
    classifiers,
    copying,
    head_importance,
    head_table,
    marks,
    scan,
    sentence_pairs,
    task_recordings,
    text_models,
    translators,
)
from recipes.loop import RunOptions
from viz_core.pretrained import CHECKPOINTS
from viz_core.runtime.device import best_device, describe_device

COMMANDS = {"learning": task_recordings.main, "head-scans": scan.scan_shipped, "atom-maps": atom_maps.main}
MEASURES: dict[str, Callable[..., None]] = {
    "head-importance": head_importance.measure_shipped,
    "alignments": alignments.measure_shipped,
    "copying": copying.measure_shipped,
    "word-counts": sentence_pairs.count_for_shipped,
    "head-table": head_table.print_table,
    "head-picture": head_table.draw_heads,
    "marks": marks.print_marks,
}
WITHOUT_DATA = {"alignments", "head-table", "head-picture", "marks"}
TRAINERS = {
    **{name: partial(translators.train, name) for name in translators.TRANSLATORS},
    **{name: partial(classifiers.train, name) for name in classifiers.CLASSIFIERS},
    **{name: partial(text_models.train, name) for name in text_models.TEXT_MODELS},
}


def count(text: str) -> int:
    """Parse a positive integer."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {text}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    given = sys.argv[1:] if arguments is None else [*arguments]
    if given and given[0] in COMMANDS:
        return COMMANDS[given[0]](given[1:])
    return _measure(given[0], given[1:]) if given and given[0] in MEASURES else _train(given)


def _measure(command: str, given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m recipes {command}", description=MEASURES[command].__doc__)
    parser.add_argument("name", help="the model, one that ships or lies in the folder of checkpoints")
    parser.add_argument("--data", type=Path, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="folder in which the model's folder lies")
    if command == "head-importance":
        parser.add_argument("--every", type=count, default=1, metavar="N", help="measure on each N-th test example")
    chosen = parser.parse_args(given)
    options = {"every": chosen.every} if "every" in chosen else {}
    if chosen.data is None and command not in WITHOUT_DATA:
        parser.error("--data is required")
    try:
        MEASURES[command](chosen.name, chosen.checkpoints, chosen.data, **options)
    except (ValueError, OSError) as error:
        print(f"{command} of {chosen.name} cannot be measured: {error}", file=sys.stderr)
        return 1
    return 0


def _train(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m recipes", description=__doc__)
    parser.add_argument("name", choices=sorted(TRAINERS), help="the model to train")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint, curves, scores and card")
    parser.add_argument("--epochs", type=count, help="passes over the data, instead of the recipe's")
    parser.add_argument("--minutes", type=float, help="stop, decayed to the end, after so many minutes of training")
    parser.add_argument("--resume", action="store_true", help="go on from OUT/last.pt")
    chosen = parser.parse_args(given)
    for option, folder in (("--data", chosen.data), ("--out", chosen.out)):
        if folder.exists() and not folder.is_dir():
            parser.error(f"{option}: expected a folder, got the file {folder}")
    try:
        device = best_device()
        print(f"training {chosen.name} on {describe_device(device)}", flush=True)
        run = RunOptions(chosen.out, device, chosen.minutes, chosen.resume)
        TRAINERS[chosen.name](chosen.data, run, chosen.epochs)
    except (ValueError, OSError) as error:
        print(f"cannot train {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
