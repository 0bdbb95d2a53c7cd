"""Measure the importance of each head of a shipped model: python -m recipes head-importance NAME --data DIR.

The score on the whole test split without each head, and with each alone in its layer (Michel 2019, tables 1 and 2),
with paired bootstrap intervals; beside it the estimate from gradients (its equation 2). Written as it goes into
heads.json beside the checkpoint, from which an interrupted run goes on, with the heads' means over a reference set and
a section of the card.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save_file

from recipes.files import format_seconds, write_json
from recipes.head_subjects import ClassifierSubject, Subject, TranslatorSubject
from viz_core.pretrained import CHECKPOINTS, Translator, load
from viz_core.pretrained.bootstrap import paired_bootstrap
from viz_core.trace import Trace, off

IMPORTANCE, MEANS = "heads.json", "head_means.safetensors"
_HEADING = "\n## Heads\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes head-importance", description=__doc__)
    parser.add_argument("name", help="the model, one with heads of scaled dot-product attention")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data; fetched into it where lacking")
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="folder in which the model's folder lies")
    chosen = parser.parse_args(arguments)
    try:
        model = load(chosen.name, folder=chosen.checkpoints)
        subject: Subject = (
            TranslatorSubject(model, chosen.data)
            if isinstance(model, Translator)
            else ClassifierSubject(model, chosen.data)
        )
        measure(subject, chosen.checkpoints / chosen.name, model.card.config.get("sha256"))
    except (ValueError, OSError) as error:
        print(f"cannot weigh the heads of {chosen.name}: {error}", file=sys.stderr)
        return 1
    return 0


def measure(subject: Subject, folder: Path, sha256: str | None) -> dict[str, Any]:
    """Measure all heads, or go on with an interrupted run; write heads.json, the means and a section of card.md."""
    start, trace = time.monotonic(), subject.trace()
    base = subject.statistics({})
    content = _begun(folder / IMPORTANCE, sha256) or {
        "sha256": sha256,
        "metric": subject.metric,
        "base": round(subject.score(base.sum(axis=0)), 2),
        "examples": len(base),
        "seconds": 0,
        "heads": _estimates(subject, trace),
    }
    before = content["seconds"]
    save_file(subject.means(), folder / MEANS)
    todo = [(kind, entry) for kind in ("without", "alone") for entry in content["heads"] if kind not in entry]
    for number, (kind, entry) in enumerate(todo, 1):
        heads = range(trace[entry["site"]].num_heads)
        closed = [h for h in heads if (h == entry["head"]) is (kind == "without")]
        entry[kind] = _difference(subject, base, {entry["site"]: [off(*closed)]} if closed else {})
        seconds = time.monotonic() - start
        content["seconds"] = round(before + seconds)
        write_json(folder / IMPORTANCE, content)
        left = format_seconds(seconds / number * (len(todo) - number))
        line = f"{entry['site']} head {entry['head']} {kind}: {entry[kind][0]:+.2f}"
        print(f"{number}/{len(todo)}  {line}  {left} left", flush=True)
    _add_to_card(folder / "card.md", content)
    return content


def _begun(path: Path, sha256: str | None) -> dict[str, Any] | None:
    """What an earlier run of the same weights wrote."""
    if not path.is_file():
        return None
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content if content.get("sha256") == sha256 else None


def _estimates(subject: Subject, trace: Trace) -> list[dict[str, Any]]:
    gradients = subject.gradients()
    return [
        {"site": call.site, "head": head, "gradient": round(float(gradients[call.site][head]), 5)}
        for call in trace
        for head in range(call.num_heads)
    ]


def _difference(subject: Subject, base: np.ndarray, edits: Any) -> list[float]:
    return [round(number, 3) for number in paired_bootstrap(subject.score, base, subject.statistics(edits))]


def _add_to_card(path: Path, content: dict[str, Any]) -> None:
    """The section on heads, in place of an older one."""
    metric = {"bleu": "BLEU (greedy)", "accuracy": "percentage of pictures right"}[content["metric"]]
    heads = content["heads"]
    sure = [entry for entry in heads if entry["without"][1] > 0 or entry["without"][2] < 0]
    better = [entry for entry in sure if entry["without"][0] > 0]
    rows = [
        f"| {_named(e)} | {_interval(e['without'])} | {_interval(e['alone'])} | {e['gradient']:.3f} |"
        for e in sorted(heads, key=lambda entry: entry["without"][0])[:10]
    ]
    section = f"""{_HEADING}
What the {metric} of {content["base"]:.2f} on the {content["examples"]:,} examples of the test split changes by without
each head, and with each alone in its layer, with 95% intervals of a paired bootstrap of 1,000 rounds; and the estimate
E |dL/dxi| from gradients (Michel 2019, equation 2). Without {len(sure)} of {len(heads)} heads the interval does not
hold 0, and without {len(better)} of these the score is better; by chance alone that would happen at about
{round(len(heads) / 20)}. The ten that cost most; all are in heads.json.

| head | without it | alone in its layer | gradient |
| --- | --- | --- | --- |
"""
    text = path.read_text(encoding="utf-8").split(_HEADING)[0]
    path.write_text(text.rstrip("\n") + "\n" + section + "\n".join(rows) + "\n", encoding="utf-8")


def _named(entry: Mapping[str, Any]) -> str:
    """Return the name of a head as on the pages, counted from 1: head 4 of layer 3 (cross-attention)."""
    stack, layer, kind = entry["site"].split(".")
    return f"head {entry['head'] + 1} of layer {int(layer) + 1} ({'cross-attention' if kind == 'cross' else stack})"


def _interval(difference: Sequence[float]) -> str:
    value, low, high = difference
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"
