"""Measure every head of a model over a file of texts: python -m recipes scan MODEL --texts FILE --out FILE.

MODEL is a name, of the Hub's too, or a folder. Each line of the texts is one. The table is CSV, a row for each head and
measure; with --against FILE, the mean over both files and their difference with its interval.

python -m recipes head-scans [NAME ...] does the same with the shipped models, for the chapter on heads. It writes
assets/heads/NAME.json: means, intervals and percentiles of every measure on narrow and on broad texts or pictures
(`viz_core.pretrained.samples`), the texts at percentiles, and what this command was.
"""

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from viz_core.hub import HubModel, load_hub
from viz_core.lab.scan import scan
from viz_core.lab.scan_results import PERCENTILES, ROUNDS, KindScan, Line, Scan
from viz_core.pretrained.samples import SETS, scan_inputs, scan_picture
from viz_core.runtime.assets import ASSETS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes scan", description=__doc__)
    parser.add_argument("model", help="a name or a folder")
    parser.add_argument("--texts", type=Path, required=True, help="a text a line")
    parser.add_argument("--against", type=Path, help="other texts to compare with")
    parser.add_argument("--out", type=Path, required=True, help="the table, CSV")
    parser.add_argument("--batch", type=int, default=16, help="texts in one pass")
    parser.add_argument("--worth", type=int, default=0, help="texts on which each head is switched off")
    parser.add_argument("--save", type=Path, help="file from which an interrupted scan of --texts goes on")
    chosen = parser.parse_args(arguments)
    try:
        texts = _texts(chosen.texts)
        model = load_hub(Path(chosen.model) if Path(chosen.model).is_dir() else chosen.model)
        options = {"batch": chosen.batch, "worth": chosen.worth}
        found = resumable_scan(model, texts, chosen.save, **options)
        other = None if chosen.against is None else resumable_scan(model, _texts(chosen.against), **options)
    except (ValueError, OSError) as error:
        print(f"cannot scan {chosen.model}: {error}", file=sys.stderr)
        return 1
    rows = list(table(found) if other is None else side_by_side(found, other))
    with chosen.out.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]) if rows else ["maps"])
        writer.writeheader()
        writer.writerows(rows)
    for file, each in ((chosen.texts, found), (chosen.against, other)):
        for number, reason in () if each is None else each.left_out:
            print(f"text {number + 1} of {file} was left out: {reason}", file=sys.stderr)
    return 0


def _texts(file: Path) -> list[str]:
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def resumable_scan(
    model: HubModel, texts: Sequence[str], save: Path | None = None, *, batch: int = 16, worth: int = 0
) -> Scan:
    """Return a scan with progress on stderr.

    Args:
        save: a file that grows with each text, from which an interrupted scan goes on.
    """
    settings = [model.card.name, model.card.revision, batch, worth, list(texts)]
    digest = hashlib.sha256(json.dumps(settings, default=_picture_digest).encode()).hexdigest()
    done = [] if save is None or not save.exists() else _read(save, digest)
    done = done if len(done) == len(texts) else done[: len(done) - len(done) % max(1, batch)]
    if save is not None:
        save.write_text("".join(_json_line(each) for each in (digest, *done)), encoding="utf-8")

    def progress(lines: Sequence[Line], count: int) -> None:
        print(f"{len(lines)} of {count}", file=sys.stderr, end="\r", flush=True)
        if save is not None:
            with save.open("a", encoding="utf-8") as stream:
                stream.write(_json_line(lines[-1]))

    return scan(model, texts, batch=batch, worth=worth, done=done, progress=progress)


def _json_line(line: object) -> str:
    return json.dumps(line, default=lambda part: part.tolist() if isinstance(part, np.ndarray) else str(part)) + "\n"


def _read(file: Path, digest: str) -> list[Line]:
    """Return the lines of an interrupted scan, without a last one that is cut short."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]
    if lines[:1] != [json.dumps(digest)]:
        raise ValueError(f"save: expected a new file, or one of the same model, texts and settings, got {file}")
    return [json.loads(line) for line in lines[1:]]


def _picture_digest(picture: Image.Image) -> str:
    return hashlib.sha256(picture.tobytes()).hexdigest()


def table(found: Scan) -> Iterator[dict[str, Any]]:
    """A row for each kind, head and measure, layers and heads counted from 1."""
    for kind, heads in found.kinds.items():
        for name in heads.measured:
            one = heads.summary(name)
            for place, (layer, head) in enumerate(heads.heads):
                row = {"maps": kind, "layer": layer + 1, "head": head + 1, "measure": name}
                row |= {part: getattr(one, part)[place] for part in ("mean", "low", "high", "chance", "texts")}
                yield row | {f"p{p}": v for p, v in zip(PERCENTILES, one.quantiles[:, place], strict=True)}


def side_by_side(first: Scan, second: Scan) -> Iterator[dict[str, Any]]:
    """A row for each head and measure of both: their means, and second - first with its 95% bootstrap interval.

    Texts of both are drawn by themselves: they are not pairs.
    """
    for kind in (kind for kind in first.kinds if kind in second.kinds):
        one, two = first.kinds[kind], second.kinds[kind]
        for name in (name for name in one.values if name in two.values):
            for place, (layer, head) in enumerate(one.heads):
                both = [found.values[name][:, place] for found in (one, two)]
                both = [each[~np.isnan(each)] for each in both]
                if not all(map(len, both)):
                    continue
                rng = np.random.default_rng(0)
                draws = [rng.choice(each, (ROUNDS, len(each))).mean(axis=1) for each in both]
                low, high = np.percentile(draws[1] - draws[0], [2.5, 97.5])
                means = [float(each.mean()) for each in both]
                row = {"maps": kind, "layer": layer + 1, "head": head + 1, "measure": name}
                row |= {"texts": means[0], "against": means[1], "difference": means[1] - means[0]}
                yield row | {"low": float(low), "high": float(high)}


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
    scans = {
        name: resumable_scan(model, [scan_picture(one) for one in some] if pictures else some, worth=worth)
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
