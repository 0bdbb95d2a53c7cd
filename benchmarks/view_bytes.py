"""A view's bytes read back, for those who check what a browser was sent."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from viz_core.view.components import unframe
from viz_core.view.payload import VERSION


@dataclass(frozen=True)
class DecodedView:
    """A view's bytes read back."""

    header: dict[str, Any]  # as docs/attention-view.md describes it
    parts: dict[str, Tensor]  # exact ones as float32, others as bytes, by name


def decode_view(data: bytes) -> DecodedView:
    """Read the bytes of `encode_view` back."""
    header, start = unframe(data)
    if header.get("version") != VERSION:
        raise ValueError(f"version: expected {VERSION}, got {header.get('version')}")
    parts = {}
    for place in header["parts"]:
        dtype = "<f4" if place["kind"] == "exact" else "u1"
        values = np.frombuffer(data, dtype, count=math.prod(place["shape"]), offset=start + place["offset"])
        parts[place["name"]] = torch.from_numpy(values.reshape(place["shape"]).copy())
    return DecodedView(header, parts)
