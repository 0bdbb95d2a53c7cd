"""Loading of checked weights."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from viz_core.pretrained.shipped import CheckpointError, read_bytes

Network = TypeVar("Network", bound=torch.nn.Module)


def build_network(config: Any, builders: Mapping[str, Callable[..., Network]]) -> Network:
    """Build the model that a config describes: "architecture", one of `builders`, and the sizes that one takes.

    CheckpointError if the config names no known architecture, lacks a field, names one the architecture has not, or
    gives one an impossible value.
    """
    name: Any = config.get("architecture") if isinstance(config, dict) else None
    if name not in builders:
        raise CheckpointError(
            "config.json does not describe a known architecture, got {got!r}; those known: {known}",
            got=name,
            known=tuple(builders),
        )
    try:
        return builders[name](**{field: size for field, size in config.items() if field != "architecture"})
    except (TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError("config.json does not describe this architecture: {detail}", detail=str(error)) from None


def load_weights(model: torch.nn.Module, path: Path, sha256: str | None = None) -> None:
    """Fill a model from safetensors, strictly: every parameter once, each of its shape.

    Raises:
        CheckpointError: if the file is missing, truncated or altered, or does not fit the model.
    """
    tensors = read_tensors(path, sha256)
    # Shared parameters are stored once, under the first of their names.
    expected = dict(model.named_parameters())
    missing, extra = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected.keys())
    if missing or extra:
        raise CheckpointError(
            "{file} does not fit the model: missing {missing}, unknown {unknown}",
            file=path.name,
            missing=missing[:3],
            unknown=extra[:3],
        )
    with torch.no_grad():
        for name, parameter in expected.items():
            if tensors[name].shape != parameter.shape:
                raise CheckpointError(
                    "{file}: {parameter} has the wrong shape: expected {expected}, got {got}",
                    file=path.name,
                    parameter=name,
                    expected=str(tuple(parameter.shape)),
                    got=str(tuple(tensors[name].shape)),
                )
            parameter.copy_(tensors[name])


def read_tensors(path: Path, sha256: str | None = None) -> dict[str, torch.Tensor]:
    """Return the tensors of a safetensors file. CheckpointError if it is missing, truncated or altered."""
    content = read_bytes(path)
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise CheckpointError(
            "{file} is not the file that was published (its SHA-256 differs): it may be cut short or "
            "altered. Fetch it again.",
            file=path.name,
        )
    try:
        return load_tensors(content)
    except SafetensorError as error:
        raise CheckpointError(
            "{file} cannot be read, it may be cut short: {detail}", file=path.name, detail=str(error)
        ) from None
