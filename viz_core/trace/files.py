"""A recording as a file: safetensors with a JSON header, never a pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from viz_core.trace.recording import Trace
from viz_core.trace.source import Direct, Held, Projected, Source

_FORMAT = "attention-atlas trace"
_VERSION = 1
_TENSORS = ("queries", "keys", "mask", "bias", "values")


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write the recorded queries, keys, masks, biases and values; never a map that can be worked out from them.

    Raises:
        ValueError: if a call does not hold what its maps come from, as one whose heads an intervention edited, or a
            tensor was changed after it was recorded.
    """
    tensors: dict[str, Tensor] = {}
    calls = []
    for number, call in enumerate(trace):
        kind, held, settings = _parts(call.source, call.site)
        calls.append({"site": call.site, "kind": kind, "settings": settings})
        tensors |= {f"{number}.{name}": tensor for name, tensor in held.items()}
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(whole, path, {"format": _FORMAT, "version": str(_VERSION), "calls": json.dumps(calls)})


def load_trace(path: str | Path) -> Trace:
    """The recording that `save_trace` wrote, on the CPU; its maps are the same to the last bit.

    Raises:
        ValueError: if the file is no such recording, is cut short or was changed.
        FileNotFoundError: if there is no such file.
    """
    trace = Trace()
    try:
        with safe_open(path, framework="pt") as file:
            for number, call in enumerate(_calls(file.metadata() or {}, path)):
                prefix = f"{number}."
                held = {n.removeprefix(prefix): file.get_tensor(n) for n in file.keys() if n.startswith(prefix)}  # noqa: SIM118
                trace.add(_source(call, held, path), call.site)
    except SafetensorError as error:
        raise ValueError(f"{path} is no recording that can be read: {error}") from None
    return trace


@dataclass(frozen=True)
class _Call:
    site: str
    kind: str
    settings: dict[str, Any]


def holds_its_maps(source: Source) -> bool:
    """Whether a source is what `save_trace` writes: weights, or queries and keys of heads that nobody edited."""
    return isinstance(source, Direct) or (isinstance(source, Projected) and source.edits is None)


def _parts(source: Source, site: str) -> tuple[str, dict[str, Tensor], dict[str, Any]]:
    """What a source is, its tensors and its settings."""
    if isinstance(source, Held):
        source.check_unchanged()
    if isinstance(source, Direct):
        added_up = {} if source.values is None else {"added_up": source.values}
        return "direct", {"values": source.weights} | added_up, {}
    if isinstance(source, Projected) and holds_its_maps(source):
        held = {name: getattr(source, name) for name in _TENSORS if getattr(source, name) is not None}
        return "projected", held, {"causal": source.causal, "scale": source.scale, "softcap": source.softcap}
    raise ValueError(
        f"site {site!r}: a {type(source).__name__} does not hold what its maps come from, and cannot be saved"
    )


def _calls(header: dict[str, str], path: str | Path) -> list[_Call]:
    if header.get("format") != _FORMAT:
        raise ValueError(f"{path} is no recording of attention, but safetensors of something else")
    if header.get("version") != str(_VERSION):
        raise ValueError(f"{path}: expected version {_VERSION} of the format, got {header.get('version')}")
    try:
        calls = [_Call(str(c["site"]), str(c["kind"]), dict(c["settings"])) for c in json.loads(header["calls"])]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: its list of calls cannot be read: {error}") from None
    return calls


def _source(call: _Call, held: dict[str, Tensor], path: str | Path) -> Source:
    if call.kind == "direct" and {"values"} <= held.keys() <= {"values", "added_up"} and held["values"].dim() == 4:
        return Direct(held["values"], held.get("added_up"))
    fits = {"queries", "keys"} <= held.keys() <= {*_TENSORS} and all(held[n].dim() == 4 for n in ("queries", "keys"))
    if call.kind != "projected" or not fits:
        raise ValueError(f"{path}: the tensors of site {call.site!r} do not make an attention call")
    settings = call.settings
    return Projected(
        held["queries"],
        held["keys"],
        held.get("mask"),
        held.get("bias"),
        causal=bool(settings.get("causal")),
        scale=float(settings["scale"]),
        softcap=None if settings.get("softcap") is None else float(settings["softcap"]),
        values=held.get("values"),
    )
