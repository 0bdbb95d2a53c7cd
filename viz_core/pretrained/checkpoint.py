"""The files of a model that ships: its card and its weights, checked before anything is made of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors


class CheckpointError(ValueError):
    """A checkpoint that is missing, truncated or of the wrong shape; the message says which and what to do."""


@dataclass(frozen=True)
class ModelCard:
    """What is known of a shipped model, from its config.json, card.md and training.json."""

    name: str
    title: str
    task: str  # "translation" or "classification"
    config: dict[str, Any] = field(repr=False)
    scores: dict[str, float]
    licence: str
    text: str = field(repr=False)  # the whole card, Markdown
    training: dict[str, Any] = field(
        repr=False
    )  # curves, scores by length, time and device, as the training script wrote them


def load_weights(model: torch.nn.Module, path: Path, sha256: str | None = None) -> None:
    """Fill a model from safetensors, strictly: every parameter once, each of its shape.

    Raises:
        CheckpointError: if the file is missing, truncated or altered, or does not fit the model.
    """
    content = read_bytes(path)
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise CheckpointError(
            f"{path.name} is not the file that was published (its SHA-256 differs): it may be cut short or altered. "
            "Fetch it again."
        )
    try:
        tensors = load_tensors(content)
    except SafetensorError as error:
        raise CheckpointError(f"{path.name} cannot be read, it may be cut short: {error}") from None
    # Shared parameters are stored once, under the first of their names.
    expected = dict(model.named_parameters())
    missing, extra = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected.keys())
    if missing or extra:
        raise CheckpointError(f"{path.name} does not fit the model: missing {missing[:3]}, unknown {extra[:3]}")
    with torch.no_grad():
        for name, parameter in expected.items():
            if tensors[name].shape != parameter.shape:
                shapes = f"expected {tuple(parameter.shape)}, got {tuple(tensors[name].shape)}"
                raise CheckpointError(f"{path.name}: {name} has the wrong shape: {shapes}")
            parameter.copy_(tensors[name])


def read_card(folder: Path) -> ModelCard:
    """The card of the model in `folder`.

    Raises:
        CheckpointError: if config.json is missing or does not hold what a card needs.
    """
    path = folder / "config.json"
    try:
        config = json.loads(read_bytes(path))
        text = (folder / "card.md").read_text(encoding="utf-8") if (folder / "card.md").is_file() else ""
        record = folder / "training.json"
        training = json.loads(read_bytes(record)) if record.is_file() else {}
        return ModelCard(
            folder.name,
            config["title"],
            config["task"],
            config,
            config.get("scores", {}),
            config["licence"],
            text,
            training,
        )
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path.name} of model {folder.name!r} cannot be read: {error!r}") from None


def read_bytes(path: Path) -> bytes:
    """A file of a model, whole.

    Raises:
        CheckpointError: if it is not there or cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError:
        raise CheckpointError(f"The model {path.parent.name!r} lacks its file {path.name}.") from None
