"""Files of a training run: the checkpoint to resume from, and the files that ship."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn


def save_progress(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint; an interruption leaves the old file intact."""
    part = path.with_suffix(".part")
    torch.save(content, part)
    part.replace(path)


def load_progress(path: Path, device: torch.device) -> dict[str, Any]:
    """Read what `save_progress` wrote.

    Raises:
        ValueError: if there is no such file.
    """
    if not path.exists():
        raise ValueError(f"nothing to resume from: {path} does not exist")
    return torch.load(path, map_location=device, weights_only=True)


def ship_weights(model: nn.Module, path: Path) -> str:
    """Write every parameter once, in float16, and round the model's own to match; returns the file's SHA-256.

    Scores measured afterwards are those of the weights that ship.
    """
    weights = save({n: p.detach().half().cpu().contiguous() for n, p in model.named_parameters()})
    path.write_bytes(weights)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
    return hashlib.sha256(weights).hexdigest()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Readable JSON, in the order given."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def record(folder: Path, measured: dict[str, Any], section: str) -> None:
    """Add measurements to a checkpoint's training.json, and a section to its card.

    The section, which begins with its heading, takes the place of an older one, or stands before "## Data".
    """
    path, card = folder / "training.json", folder / "card.md"
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | measured)
    heading = re.escape(section.splitlines()[0])
    text = re.sub(rf"^{heading}\n.*?(?=^## )", "", card.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    card.write_text(text.replace("## Data\n", f"{section}\n## Data\n", 1), encoding="utf-8")


def settings_table(*settings: dict[str, Any]) -> str:
    """Rows of a Markdown table, a setting each."""
    return "\n".join(f"| {key} | {value} |" for part in settings for key, value in part.items())
