"""Read the bytes of a chart back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from viz_core.view.components import unframe


def decode_chart(data: bytes) -> dict[str, Any]:
    """Return the arguments of `encode_chart`, with numpy arrays; ValueError if the bytes are truncated."""
    header, start = unframe(data)

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return [read(each) for each in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"dtype", "at", "shape"}:
            count = math.prod(value["shape"])
            return np.frombuffer(data, value["dtype"], count, start + value["at"]).reshape(value["shape"])
        return {name: read(each) for name, each in value.items()}

    return {name: read(value) for name, value in header.items()}
