"""Weights in the shipped format, written by the library's tests without the training programs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from safetensors.torch import save
from torch import nn


def write_weights(model: nn.Module, path: Path) -> str:
    """Write every parameter once, in float16; return the file's SHA-256."""
    weights = save({name: p.detach().half().contiguous() for name, p in model.named_parameters()})
    path.write_bytes(weights)
    return hashlib.sha256(weights).hexdigest()
