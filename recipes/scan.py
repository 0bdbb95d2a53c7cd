"""Measure every head of the shipped models, for the chapter on heads: python -m recipes head-scans [NAME ...].

Writes assets/heads/NAME.json: means, intervals and percentiles of every measure on narrow and broad texts or pictures
(`viz_core.pretrained.samples`), the texts at percentiles, and what this command was.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from viz_core.hub import HubModel, load_hub
from viz_core.lab.scan import scan
from viz_core.lab.scan_results import PERCENTILES, KindScan, Scan
from viz_core.pretrained.samples import SETS, scan_inputs, scan_picture
from viz_core.runtime.assets import ASSETS

MODELS = ("writer-en", "reader-en", "transformer-en-fr", "vit-fashion-mnist", "vit-cifar10")
FOLDER = ASSETS / "heads"
_WORTH = 36


def scan_shipped(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of head-scans; return 0."""
    parser = argparse.ArgumentParser(prog="python -m recipes head-scans", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}; all unless given")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the tables")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in MODELS]
    if unknown:
        parser.error(f"NAME: expected some of {', '.join(MODELS)}, got {', '.join(unknown)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.names or MODELS:
        content = measure(load_hub(name))
        (chosen.out / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {content['texts']}", flush=True)
    return 0


def measure(model: HubModel, worth: int = _WORTH) -> dict[str, Any]:
    """Return the tables of a model."""
    pictures = model.engine.inputs == {"image"}
    sets = {name: scan_inputs(name, pictures) for name in SETS}

    def progress(lines: Sequence[object], count: int) -> None:
        print(f"{len(lines)} of {count}", file=sys.stderr, end="\r", flush=True)

    scans = {
        name: scan(model, [scan_picture(one) for one in some] if pictures else some, worth=worth, progress=progress)
        for name, some in sets.items()
    }
    kinds = {kind: _kind(scans, kind) for kind in scans["narrow"].kinds}
    used = sorted({(name, one[2]) for kind in kinds.values() for name in sets for one in _examples(kind, name)})
    texts = (
        "Narrow: English sentences of the Tatoeba project, CC BY 2.0 (www.manythings.org/anki and tatoeba.org). Broad: "
        "this repository's README, licence, guide and code, under its licence."
    )
    shown = "Narrow: Fashion-MNIST, MIT. Broad: pictures drawn for this repository, under its licence."
    return {
        "command": f"python -m recipes head-scans {model.card.name}",
        "pictures": pictures,
        "head": model.card.head,
        "revision": model.card.revision,
        "licence": shown if pictures else texts,
        "sha256": hashlib.sha256(json.dumps(sets).encode()).hexdigest(),
        "texts": {name: found.texts for name, found in scans.items()},
        "tokens": {name: found.tokens for name, found in scans.items()},
        "percentiles": PERCENTILES,
        "kinds": kinds,
        "quoted": {name: {number: sets[name][number] for which, number in used if which == name} for name in sets},
    }


def _examples(kind: dict[str, Any], name: str) -> list[Any]:
    measures = kind["examples"].get(name, {})
    return [one for measure, heads in measures.items() if measure != "induction" for head in heads for one in head]


def _kind(scans: dict[str, Scan], kind: str) -> dict[str, Any]:
    found = {name: each.kinds[kind] for name, each in scans.items() if kind in each.kinds}
    heads = found["narrow"].heads
    return {
        "heads": heads,
        "measures": {
            name: {measure: _summary(each, measure) for measure in each.measured} for name, each in found.items()
        },
        "examples": {
            name: {
                measure: [
                    [[one.percentile, _short(one.value), one.text, one.query] for one in each.examples(place, measure)]
                    for place in range(len(heads))
                ]
                for measure in each.measured
                if measure != "induction"  # of random tokens
            }
            for name, each in found.items()
        },
    }


def _summary(kind: KindScan, measure: str) -> dict[str, Any]:
    """Each part of a summary, a number a head."""
    one = kind.summary(measure)
    parts = {"mean": one.mean, "low": one.low, "high": one.high, "chance": one.chance, "texts": one.texts}
    parts |= {f"p{percent}": row for percent, row in zip(PERCENTILES, one.quantiles, strict=True)}
    return {name: [_short(float(number)) for number in numbers] for name, numbers in parts.items()}


def _short(number: float) -> float | None:
    """Four significant digits; None for NaN."""
    return None if np.isnan(number) else float(f"{number:.4g}")
