"""Draw the sample pictures that ship: python -m recipes sample-pictures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image

from recipes.drawings.garments import GARMENTS
from recipes.drawings.scenes import SCENES
from viz_core.images.drawn import FOLDER

DRAWINGS: dict[str, Callable[[], Image.Image]] = {**GARMENTS, **SCENES}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0."""
    parser = argparse.ArgumentParser(prog="python -m recipes sample-pictures", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the PNG files")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        draw().save(out / f"{name}.png", optimize=True)
    return 0
