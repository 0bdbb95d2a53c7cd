"""Measure a model that is trained, and write what was found beside it: python -m viz_core.training.measure NAME."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from viz_core.pretrained import CHECKPOINTS, Translator, load_translator
from viz_core.runtime.device import best_device
from viz_core.training.alignments import alignment_section, measure_alignments
from viz_core.training.files import write_json


def main(arguments: list[str] | None = None) -> int:
    """Measure what the command line names; 0 if that went well, else 1, with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m viz_core.training.measure", description=__doc__)
    parser.add_argument("name", help="the model to measure, such as transformer-en-fr")
    parser.add_argument("--folder", type=Path, default=CHECKPOINTS, help="where models lie, unless with the project")
    chosen = parser.parse_args(arguments)
    try:
        folder: Path = chosen.folder
        record_alignments(load_translator(chosen.name, best_device(), folder), folder / chosen.name)
    except (ValueError, OSError) as error:
        print(f"cannot measure {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0


def record_alignments(translator: Translator, folder: Path) -> None:
    """How well each cross-attention head aligns words, into training.json and the card; nothing without attention."""
    measured = measure_alignments(translator)
    if measured is not None:
        record(folder, "alignments", measured, alignment_section(measured))


def record(folder: Path, name: str, measured: dict[str, Any], section: str) -> None:
    """Put what was measured into training.json under this name, and its section before "## Data" in the card."""
    path, card = folder / "training.json", folder / "card.md"
    training = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, training | {name: measured})
    heading = section.splitlines()[0]
    without = re.sub(rf"^{re.escape(heading)}\n.*?(?=^## )", "", card.read_text(encoding="utf-8"), flags=re.M | re.S)
    card.write_text(without.replace("## Data\n", f"{section}\n## Data\n", 1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
