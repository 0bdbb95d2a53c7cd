"""Train a shipped model on any device: python -m viz_core.training NAME --data DIR --out DIR [--resume]."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from viz_core.runtime.device import best_device, describe_device
from viz_core.training import classifiers, translators

RECIPES = {
    **{name: partial(translators.train, name) for name in translators.DESIGNS},
    **{name: partial(classifiers.train, name) for name in classifiers.DESIGNS},
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m viz_core.training", description=__doc__)
    parser.add_argument("name", choices=sorted(RECIPES), help="the model to train")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint, curves, scores and card")
    parser.add_argument("--minutes", type=float, help="stop, decayed to the end, after so many minutes of training")
    parser.add_argument("--epochs", type=int, help="passes over the data, instead of the recipe's")
    parser.add_argument("--resume", action="store_true", help="go on from OUT/last.pt")
    chosen = parser.parse_args(arguments)
    try:
        device = best_device()
        print(f"training {chosen.name} on {describe_device(device)}", flush=True)
        RECIPES[chosen.name](chosen.data, chosen.out, device, chosen.minutes, chosen.epochs, chosen.resume)
    except (ValueError, OSError) as error:
        print(f"cannot train {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
