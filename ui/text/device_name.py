"""Name of a device in the reader's language."""

from __future__ import annotations

import re

from ui.text.words import load_words


def device_name(described: str) -> str:
    """Return a device as `describe_device` names it, in words: "CPU, 2 núcleos"."""
    cores = re.fullmatch(r"CPU, (\d+) cores", described)
    return load_words("common")("device-cpu", count=cores[1]) if cores else described
