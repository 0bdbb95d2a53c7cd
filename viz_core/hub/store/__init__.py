"""The one error of the hub, and what it refuses: names, sizes of a config, and more memory than there is."""

import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch

from viz_core.runtime.device import fast_precision
from viz_core.runtime.refusal import RefusalError

Arguments, Result = ParamSpec("Arguments"), TypeVar("Result")


class HubError(RefusalError, ValueError):
    """A model that cannot be loaded or an input it cannot take; the message is for users."""


def attempt(work: Callable[Arguments, Result], *args: Arguments.args, **options: Arguments.kwargs) -> Result | HubError:
    """Return what `work` returns, or the HubError that it raises."""
    try:
        return work(*args, **options)
    except HubError as error:
        return error


_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_PART}(?:/{_PART})?")
_PATH = re.compile(r"[./~]|.:|.*(\\|\.\.|/.*/)", re.DOTALL)
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,127}")
_SHOWN = 60


def check_name(name: str) -> str:
    """A name as the Hub gives them, "owner/model" or "model", without spaces around it."""
    name = name.strip()
    if not name:
        raise HubError("Type the name of a model, like google-bert/bert-base-uncased.")
    if "://" in name or name.lower().startswith(("www.", "huggingface.co", "hf.co")):
        raise HubError(
            "{typed} is an address. Type only the model's name, like google-bert/bert-base-uncased: the last "
            "two parts of its address on the Hub.",
            typed=shown(name),
        )
    if _PATH.match(name):
        raise HubError(
            "{typed} is a path, not the name of a model. Names look like google-bert/bert-base-uncased; from "
            "Python, a folder is given as a Path: load_hub(Path(...)).",
            typed=shown(name),
        )
    if not _NAME.fullmatch(name) or "--" in name or name.endswith(".git"):
        raise HubError(
            "{typed} is not a model's name. A name has letters, digits, '-', '_' and '.', and at most one '/' "
            "between owner and model.",
            typed=shown(name),
        )
    return name


def check_revision(revision: str | None) -> str | None:
    """A branch, tag or commit; None for the newest."""
    revision = (revision or "").strip()
    if not revision:
        return None
    if not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision:
        raise HubError(
            "{typed} is not a revision. Give a branch, a tag or a commit, or leave it empty.", typed=shown(revision)
        )
    return revision


def shown(text: str) -> str:
    """What was typed, quoted, short enough for a sentence and without what cannot be seen."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.strip())
    return f"“{visible}”" if len(visible) <= _SHOWN else f"“{visible[:_SHOWN]}…”"


_OVERHEAD = 1.15  # beside the parameters: buffers, one tensor in two precisions while loading, a short input
_SHARE = 0.8  # of the memory that is free


def precision(device: torch.device) -> torch.dtype:
    """Half precision (bfloat16) on a GPU that multiplies it, else float32."""
    return fast_precision(device) if device.type == "cuda" else torch.float32


def estimate_bytes(num_parameters: int, dtype: torch.dtype) -> int:
    """Bytes a loaded model takes: each parameter at its size, and an eighth or so beside them."""
    return int(num_parameters * dtype.itemsize * _OVERHEAD)


def free_bytes(device: torch.device) -> int:
    """Bytes that are free on a device now."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    info = Path("/proc/meminfo")
    if info.is_file():
        fields = dict(line.split(":", 1) for line in info.read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def check_budget(name: str, needed: int, budget: int | None, device: torch.device) -> None:
    """Refuse a model that needs more bytes than the budget, or than four fifths of what is free on the device."""
    allowed = int(free_bytes(device) * _SHARE) if budget is None else budget
    if needed > allowed:
        raise HubError(
            "{name} needs about {needed} of memory; {allowed} are allowed here. Choose a smaller model.",
            name=name,
            needed=human_bytes(needed),
            allowed=human_bytes(allowed),
        )


def human_bytes(count: int) -> str:
    """ "91 MB", "2.4 GB": decimal units, two digits where it matters."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            value = count / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{count} B"


MAX_PARTS = 10_000
"""No model has so many layers, heads, experts or labels; a library makes each of them before it looks at a weight."""

MAX_POSITIONS = 2**27
"""Nor takes so many tokens: some libraries work out a table for all of them."""

MAX_SIDE = 4096
"""Nor sees pictures of so many pixels on a side; its processor makes an array of 32-bit numbers of them."""

MAX_PIXELS = 2**25
"""Nor so many pixels in all frames of a video together."""

_SIDES = {"height", "width", "edge", "size", "pinpoints"}
_PARTS = {"layer", "layers", "heads", "labels", "experts", "blocks", "depth", "depths", "stages", "types", "groups"}
_POSITIONS = {"positions", "position", "embeddings", "ctx", "frames"}


def check_sizes(config: dict[str, Any], name: str) -> None:
    """Refuse a config with absurd numbers."""
    for key, value in _numbers(config):
        words = set(key.lower().split("_"))
        most = MAX_PARTS if words & _PARTS else MAX_POSITIONS if words & _POSITIONS else math.inf
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
        if value > (MAX_SIDE if side else MAX_PIXELS if together else MAX_SIDE**2):
            raise _absurd(file, name, key, value)


_WITHOUT_LIMIT = {"model_max_length", "max_length"}
"""Numbers of a tokenizer that nothing is made of; many write 10^30 for "any"."""

MAX_TOKENS = 2**20
"""No tokenizer has so many tokens; some make as many extra ones as they are asked to."""


def check_tokenizer(config: dict[str, Any], file: str, name: str) -> None:
    """Refuse settings of a tokenizer or of writing with absurd numbers, or very many items."""
    for count, (key, value) in enumerate(_numbers(config)):
        if count > MAX_TOKENS:
            raise _absurd(file, name, key, count)
        most = MAX_PARTS if "extra" in key else MAX_TOKENS
        if value > most and key not in _WITHOUT_LIMIT:
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
