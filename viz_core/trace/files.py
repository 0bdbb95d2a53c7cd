"""A recording as a file: safetensors with a JSON header, never a pickle."""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from viz_core.trace.arguments import check_tensors
from viz_core.trace.call import AttentionCall
from viz_core.trace.record import Trace
from viz_core.trace.shapes import check_scores, check_values
from viz_core.trace.source import Direct, Projected, Source, view_key

_FORMAT = "attention-atlas trace"
_VERSION = 2  # 1 wrote a tensor that several calls share with each of them, and no check sums
_TENSORS = ("queries", "keys", "mask", "bias", "values")


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write the recorded queries, keys, masks, biases and values; never a map that can be worked out from them.

    A tensor that several calls share, as one mask for all layers, is written once. What stood at `path` is replaced
    when all is written, not before. A call whose heads an intervention edited is written as its map, whole.

    Raises:
        ValueError: if a tensor was changed after it was recorded, or has no numbers, being on the device meta.
        FileNotFoundError: if there is no such folder.
        IsADirectoryError: if the path is a folder.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(f"expected a file to write, got the folder {path}")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"expected a folder to write to, got {Path(path).parent}")
    names: dict[Hashable, str] = {}  # in the file, of what was met
    tensors: dict[str, Tensor] = {}
    calls = []
    for number, call in enumerate(trace):
        kind, held, settings = _parts(saved_source(call), call.site)
        for name, tensor in held.items():
            if names.setdefault(view_key(tensor), f"{number}.{name}") == f"{number}.{name}":
                tensors[f"{number}.{name}"] = tensor
        where = {name: names[view_key(tensor)] for name, tensor in held.items()}
        calls.append({"site": call.site, "kind": kind, "settings": settings, "tensors": where})
    whole = {n: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for n, tensor in tensors.items()}
    header = {"calls": json.dumps(calls), "sums": _check_sums(whole)}
    save_file(whole, path, {"format": _FORMAT, "version": str(_VERSION), **header})


def load_trace(path: str | Path) -> Trace:
    """The recording that `save_trace` wrote, on the CPU; its maps are the same to the last bit.

    Raises:
        ValueError: if the file is no such recording, is cut short or was changed, or a newer version wrote it.
        FileNotFoundError: if there is no such file.
    """
    trace = Trace()
    if Path(path).is_dir():
        raise ValueError(f"{path} is no recording that can be read: it is a folder")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            calls = _calls(header, path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is no recording that can be read: {error}") from None
    if header["version"] != "1" and header.get("sums") != _check_sums(tensors):
        raise ValueError(f"{path} is no recording that can be read: its numbers are not those that were saved")
    for number, call in enumerate(calls):
        own = {name.split(".")[1]: name for name in tensors if name.startswith(f"{number}.")}
        try:
            held = {name: tensors[where] for name, where in (call.tensors or own).items()}
            trace.add(_source(call, held), call.site)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: what site {call.site!r} holds makes no attention call: {error}") from None
    return trace


def _check_sums(tensors: dict[str, Tensor]) -> str:
    """CRC-32 of each tensor's bytes: what tells that a disk or a transfer changed one."""
    numbers = {name: tensor.reshape(-1).view(torch.uint8).numpy() for name, tensor in tensors.items()}
    return json.dumps({name: zlib.crc32(found.data) for name, found in numbers.items()}, sort_keys=True)


@dataclass(frozen=True)
class _Call:
    site: str
    kind: str
    settings: dict[str, Any]
    tensors: dict[str, str]  # their names in the file; none in version 1, where the call's number says it


def saved_source(call: AttentionCall) -> Direct | Projected:
    """What `save_trace` writes of a call: weights, or queries and keys; its map where that comes of more than these."""
    source = call.source
    if isinstance(source, Direct) or (isinstance(source, Projected) and source.edits is None):
        return source
    return Direct(call.weights(), getattr(source, "values", None))


def _parts(source: Direct | Projected, site: str) -> tuple[str, dict[str, Tensor], dict[str, Any]]:
    """What a source is, its tensors and its settings."""
    source.check_unchanged()
    if any(tensor.is_meta for tensor in source.tensors()):
        raise ValueError(f"site {site!r}: expected numbers to save, got tensors on the device meta, which have none")
    if isinstance(source, Direct):
        added_up = {} if source.values is None else {"added_up": source.values}
        return "direct", {"values": source.weights} | added_up, {}
    held = {name: getattr(source, name) for name in _TENSORS if getattr(source, name) is not None}
    softcap = None if source.softcap is None else float(source.softcap)  # numpy's numbers are none of JSON's
    return "projected", held, {"causal": bool(source.causal), "scale": float(source.scale), "softcap": softcap}


def _calls(header: dict[str, str], path: str | Path) -> list[_Call]:
    if header.get("format") != _FORMAT:
        raise ValueError(f"{path} is no recording of attention, but safetensors of something else")
    if header.get("version") not in {"1", str(_VERSION)}:
        raise ValueError(f"{path}: expected version 1 or {_VERSION} of the format, got {header.get('version')}")
    try:
        return [
            _Call(str(c["site"]), str(c["kind"]), dict(c["settings"]), dict(c.get("tensors", {})))
            for c in json.loads(header["calls"])
        ]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: its list of calls cannot be read: {error}") from None


def _source(call: _Call, held: dict[str, Tensor]) -> Source:
    """The source that `_parts` took apart.

    Raises:
        KeyError, TypeError, ValueError: if these do not make one.
    """
    if call.kind == "direct" and {"values"} <= held.keys() <= {"values", "added_up"}:
        check_tensors(weights=held["values"])
        if held["values"].dim() != 4:
            raise ValueError(f"weights of shape {tuple(held['values'].shape)}")
        return Direct(held["values"], held.get("added_up"))
    if call.kind != "projected" or not held.keys() <= {*_TENSORS}:
        raise ValueError(f"a {call.kind} of {sorted(held)}")
    queries, keys, mask, bias, values = held["queries"], held["keys"], *(held.get(name) for name in _TENSORS[2:])
    scale, softcap = float(call.settings["scale"]), call.settings["softcap"]
    softcap = None if softcap is None else float(softcap)
    check_scores(queries, keys, mask, bias, softcap)
    if values is not None:
        check_values(keys, values)
    return Projected(queries, keys, mask, bias, bool(call.settings["causal"]), scale, softcap, values)
