"""Measure a classifier's calibration: python -m recipes calibration NAME --data DIR.

And how far from its training pictures others are. Measured on the test pictures, which nothing was chosen by; written
into training.json and familiarity.safetensors beside the checkpoint, and as a section of the card.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from recipes.classifiers import CLASSIFIERS
from recipes.reliability import record_reliability
from viz_core.pretrained import CHECKPOINTS, load_classifier


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes calibration", description=__doc__)
    parser.add_argument("name", choices=sorted(CLASSIFIERS), help="the model, a classifier of pictures")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="folder in which the model's folder lies")
    chosen = parser.parse_args(arguments)
    try:
        model = load_classifier(chosen.name, folder=chosen.checkpoints)
        record_reliability(model, CLASSIFIERS[chosen.name].data.load(chosen.data), chosen.checkpoints / chosen.name)
    except (ValueError, OSError) as error:
        print(f"cannot measure the calibration of {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0
