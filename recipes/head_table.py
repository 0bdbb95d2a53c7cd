"""What each head of a translator does: python -m recipes head-table NAME [--checkpoints FOLDER], or head-picture.

Prints, by kind of attention and layer: the share of the heads' weight on a mark, how many give it more than half, and
the roles that a scan names; then BLEU and the alignment error of the best cross-attention head, as recorded.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image

from recipes.marks import MUCH, mark_shares
from viz_core.hub import HubModel
from viz_core.hub.shipped import as_hub_model
from viz_core.lab.scan import scan
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import held_out, scan_inputs

EXAMPLE = "The black cat is sleeping on my bed."
ON_MARKS = {"encoder-self": "separator", "decoder-self": "first"}  # what a scan calls a head that rests on the mark


def print_table(name: str, checkpoints: Path, _: Path | None) -> None:
    """Print what each head of a translator with self-attention does, and its recorded scores."""
    translator = load_translator(name, folder=checkpoints)
    shares = mark_shares(translator, held_out())
    if not shares:
        raise ValueError("expected a model with self-attention, got one without")
    roles = head_roles(as_hub_model(translator, translator.device), scan_inputs("narrow"))
    print(table(shares, roles))
    print(scores(checkpoints / name))


@torch.inference_mode()
def draw_heads(name: str, checkpoints: Path, _: Path | None) -> None:
    """Write NAME-heads.png: the self-attention of every head on one sentence, a row a layer, darker for more weight."""
    translation = load_translator(name, folder=checkpoints).translate(EXAMPLE)
    rows = []
    for call in translation.trace:
        if call.kind == "self":
            heads = 255 - (255 * call.weights()[0].sqrt()).byte().numpy()
            square = [
                np.pad(head.repeat(128 // len(head), 0).repeat(128 // len(head), 1), 3, constant_values=190)
                for head in heads
            ]
            row = Image.fromarray(np.concatenate(square, axis=1))
            rows.append(np.asarray(row.resize((8 * 72, 72), Image.Resampling.NEAREST)))
    Image.fromarray(np.concatenate(rows)).save(f"{name}-heads.png", optimize=True)


def head_roles(model: HubModel, texts: Sequence[str]) -> dict[str, list[list[str]]]:
    """The role of each head that a scan of these texts names, "" for none, by kind of attention and layer."""
    found: dict[str, list[list[str]]] = {}
    for kind, heads in scan(model, texts).kinds.items():
        layers: dict[int, list[str]] = {}
        for place, (layer, _) in enumerate(heads.heads):
            role = heads.role_of(place)
            layers.setdefault(layer, []).append(role[0] if role else "")
        found[kind] = [layers[layer] for layer in sorted(layers)]
    return found


def table(shares: dict[str, Float[np.ndarray, "layers heads"]], roles: dict[str, list[list[str]]]) -> str:
    """Rows of a Markdown table, a layer each, and a line over all."""
    rows = ["| layer | median on a mark | heads above one half | roles |", "| --- | --- | --- | --- |"]
    for kind, layers in shares.items():
        for layer, heads in enumerate(layers):
            named = [role for role in roles[kind][layer] if role]
            counts = ", ".join(f"{role} {named.count(role)}" for role in dict.fromkeys(named)) or "none"
            row = f"{np.median(heads):.2f} | {(heads > MUCH).sum()} of {len(heads)} | {counts}"
            rows.append(f"| {kind} {layer + 1} | {row} |")
    every = np.concatenate([layers.ravel() for layers in shares.values()])
    count = sum(bool(role) and role != ON_MARKS[kind] for kind in shares for layer in roles[kind] for role in layer)
    found = f"{count} heads with another role than their mark's"
    rows.append(f"| all | {np.median(every):.2f} | {(every > MUCH).sum()} of {len(every)} | {found} |")
    return "\n".join(rows)


def scores(folder: Path) -> str:
    """A line of what the checkpoint's own files record."""
    config, training = (json.loads((folder / name).read_text("utf-8")) for name in ("config.json", "training.json"))
    best = min(rate for layer in training["alignments"]["written"] for rate in layer)
    copied: dict[str, Any] = training["copying"]
    return (
        f"\nBLEU greedy {config['scores']['bleu_greedy']:.1f}, beam 4 {config['scores']['bleu_beam_4']:.1f}; numbers "
        f"{copied['numbers']['right']:.1f}%, names {copied['names']['right']:.1f}%; alignment error of the best head "
        f"{100 * best:.1f}%"
    )
