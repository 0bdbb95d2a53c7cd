"""Limits for the numbers of a model's config.json, checked before anything is allocated."""

import math
from collections.abc import Iterator
from typing import Any

from viz_core.hub.store.errors import HubError

MOST_PARTS = 10_000
"""No model has so many layers, heads, experts or labels; a library makes each of them before it looks at a weight."""

MOST_POSITIONS = 2**27
"""Nor takes so many tokens: some libraries work out a table for all of them."""

MOST_SIDE = 4096
"""Nor sees pictures of so many pixels on a side; its processor makes an array of 32-bit numbers of them."""

MOST_PIXELS = 2**25
"""Nor so many pixels in all frames of a video together."""

_SIDES = {"height", "width", "edge", "size", "pinpoints"}
_PARTS = {"layer", "layers", "heads", "labels", "experts", "blocks", "depth", "depths", "stages", "types", "groups"}
_POSITIONS = {"positions", "position", "embeddings", "ctx", "frames"}


def check_sizes(config: dict[str, Any], name: str) -> None:
    """Refuse a config with absurd numbers."""
    for key, value in _numbers(config):
        words = set(key.lower().split("_"))
        most = MOST_PARTS if words & _PARTS else MOST_POSITIONS if words & _POSITIONS else math.inf
        if value > most:
            raise _absurd("config.json", name, key, value)


def check_processor(config: dict[str, Any], file: str, name: str, counts_pixels: bool = False) -> None:
    """Refuse a processor of pictures or videos with absurd sizes: it makes arrays of them for every picture."""
    # where edges are numbers of pixels (Qwen2-VL)
    counts_pixels = counts_pixels or "merge_size" in config or "min_pixels" in config
    for part in config.values():
        if isinstance(part, dict):
            check_processor(part, file, name, counts_pixels)
    for key, value in _numbers({key: value for key, value in config.items() if not isinstance(value, dict)}):
        words = set(key.lower().split("_"))
        side = bool(words & _SIDES) and not (counts_pixels and "edge" in words)
        together = counts_pixels and bool(words & {"longest", "max"})
        if value > (MOST_SIDE if side else MOST_PIXELS if together else MOST_SIDE**2):
            raise _absurd(file, name, key, value)


def _absurd(file: str, name: str, field: str, number: float) -> HubError:
    sentence = "The {file} of {name} cannot be right: {field} is {number:,}."
    return HubError(sentence, file=file, name=name, field=field[:60], number=number)


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Every number in a nested value with its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("id2label", "label2id"):
                yield from _numbers(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield key, value
