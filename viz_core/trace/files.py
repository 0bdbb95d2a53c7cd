"""Save and load a recording: safetensors with a JSON header, never a pickle."""

import json
import zlib
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from viz_core.trace.arguments import check_scores, check_tensors, check_values
from viz_core.trace.call import AttentionCall
from viz_core.trace.one_text import OneText
from viz_core.trace.source import Direct, Projected, Source, view_key
from viz_core.trace.trace import Trace

_FORMAT = "attention-atlas trace"
_VERSION = "2"
_TENSORS = ("queries", "keys", "mask", "bias", "values", "query_tokens", "key_tokens", "gate", "texts", "covers")


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write the recorded queries, keys, masks, biases, values and states; no map that can be recomputed from them.

    A tensor that several calls share, as one mask for all layers, is written once. An existing file is replaced after
    everything is written. A call with edited heads is written as its map, whole, and
    without values if the edits change what its heads write.

    Raises:
        ValueError: if a tensor was changed after it was recorded, or is on the device meta, without numbers.
        FileNotFoundError: if there is no such folder.
        IsADirectoryError: if the path is a folder.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(f"expected a file to write, got the folder {path}")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"expected a folder to write to, got {Path(path).parent}")
    names: dict[Hashable, str] = {}  # in the file, by view
    tensors: dict[str, Tensor] = {}
    calls = []
    for number, call in enumerate(trace):
        kind, stored, settings = _parts(saved_source(call), call.site)
        for name, tensor in stored.items():
            if names.setdefault(view_key(tensor), f"{number}.{name}") == f"{number}.{name}":
                tensors[f"{number}.{name}"] = tensor
        where = {name: names[view_key(tensor)] for name, tensor in stored.items()}
        calls.append({"site": call.site, "kind": kind, "settings": settings, "tensors": where})
    states = {name: names.setdefault(view_key(state), f"state.{name}") for name, state in trace.states.items()}
    tensors |= {where: trace.states[name] for name, where in states.items() if where == f"state.{name}"}
    whole = {n: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for n, tensor in tensors.items()}
    header = {"calls": json.dumps(calls), "states": json.dumps(states), "sums": _check_sums(whole)}
    save_file(whole, path, {"format": _FORMAT, "version": _VERSION, **header})


def load_trace(path: str | Path) -> Trace:
    """Return the recording that `save_trace` wrote, on the CPU; its maps are the same, bit for bit.

    Raises:
        ValueError: if the file is not a recording, is truncated or was changed, or has another version of the format.
        FileNotFoundError: if there is no such file.
    """
    trace = Trace()
    if Path(path).is_dir():
        raise ValueError(f"{path} is not a recording that can be read: it is a folder")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            calls, states = _calls(header, path), _states(header, path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a recording that can be read: {error}") from None
    if any(not tensor.numel() or max(tensor.shape, default=0) > _MAX_LENGTH for tensor in tensors.values()):
        raise ValueError(f"{path}: expected tensors of 1 to {_MAX_LENGTH:,} numbers along each side, got others")
    if header.get("sums") != _check_sums(tensors):
        raise ValueError(f"{path} is not a recording that can be read: its numbers are not those that were saved")
    for site, kind, settings, names in calls:
        try:
            stored = {name: tensors[where] for name, where in names.items()}
            trace.add(_source(kind, settings, stored), site)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: what site {site!r} holds makes no attention call: {error}") from None
    if not set(states.values()) <= tensors.keys():
        raise ValueError(f"{path} is not a recording that can be read: a state is missing")
    trace.states.update((name, tensors[where]) for name, where in states.items())
    return trace


def _check_sums(tensors: dict[str, Tensor]) -> str:
    """Return the CRC-32 of each tensor's bytes, which detects changes by a disk or a transfer."""
    arrays = {name: tensor.reshape(-1).view(torch.uint8).numpy() for name, tensor in tensors.items()}
    return json.dumps({name: zlib.crc32(array.data) for name, array in arrays.items()}, sort_keys=True)


def saved_source(call: AttentionCall) -> Direct | Projected:
    """Return what `save_trace` writes of a call: queries and keys, or its map if that depends on more than these."""
    source = call.source
    if isinstance(source, Direct) or (isinstance(source, Projected) and source.edits is None and not source.signed):
        return source
    weights = call.weights()
    texts = getattr(source, "texts", None)
    return Direct(weights, _plain_values(source, weights), call.query_mask, call.key_mask, call.signed, texts=texts)


def _plain_values(source: Source, weights: Tensor) -> Tensor | None:
    """Return the values if what the layer projects is weights times them; None where edits or a gate change it."""
    if not isinstance(source, Projected | OneText) or source.gate is not None or source.is_changed:
        return None
    try:
        factors = torch.stack([source.value_factor(head) for head in range(source.shape[1])], dim=1)
    except ValueError:  # an edit replaces the output
        return None
    return source.values if torch.equal(weights * factors[..., None, None], weights) else None


def _parts(source: Direct | Projected, site: str) -> tuple[str, dict[str, Tensor], dict[str, Any]]:
    """Return the kind of a source, its tensors and its settings."""
    source.check_unchanged()
    if any(tensor.is_meta for tensor in source.tensors()):
        raise ValueError(f"site {site!r}: expected numbers to save, got tensors on the device meta, which have none")
    if isinstance(source, Direct):
        values = None if source.gate is not None or source.is_changed else source.values
        names = ("query_tokens", "key_tokens", "texts", "sampled")
        optional = {"added_up": values} | {name: getattr(source, name) for name in names}
        own = {name: tensor for name, tensor in optional.items() if tensor is not None}
        # The names of version 2.
        return "direct", {"values": source.weights} | own, {"signed": True} if source.signed else {}
    softcap = None if source.softcap is None else float(source.softcap)  # JSON takes no numpy numbers
    settings = {"causal": bool(source.causal), "scale": float(source.scale), "softcap": softcap}
    flags = {name: True for name in ("is_changed", "has_sink") if getattr(source, name)}
    return "projected", source.named_tensors(), settings | flags


_MAX_CALLS = 10_000
_MAX_LENGTH = 2**22  # tokens, heads or numbers along one side


def _calls(header: dict[str, str], path: str | Path) -> list[tuple[str, str, dict[str, Any], dict[str, str]]]:
    """Return the site, kind, settings and names of tensors of each call."""
    if header.get("format") != _FORMAT:
        raise ValueError(f"{path} is not a recording of attention, but safetensors of something else")
    if header.get("version") != _VERSION:
        raise ValueError(f"{path}: expected version {_VERSION} of the format, got {header.get('version')}")
    try:
        calls = json.loads(header["calls"])
        if len(calls) > _MAX_CALLS:
            raise ValueError(f"expected at most {_MAX_CALLS:,} calls, got {len(calls):,}")
        return [(str(c["site"]), str(c["kind"]), dict(c["settings"]), dict(c["tensors"])) for c in calls]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: its list of calls cannot be read: {error}") from None


def _states(header: dict[str, str], path: str | Path) -> dict[str, str]:
    """Return the names of states, and those of their tensors in the file."""
    try:
        return {str(name): str(where) for name, where in json.loads(header.get("states", "{}")).items()}
    except (AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: its list of states cannot be read: {error}") from None


def _source(kind: str, settings: dict[str, Any], stored: dict[str, Tensor]) -> Source:
    """Return the source of which `_parts` gave kind, tensors and settings."""
    masks = {name: stored.get(name) for name in ("query_tokens", "key_tokens", "texts", "sampled")}
    if kind == "direct" and {"values"} <= stored.keys() <= {"values", "added_up", *masks}:
        check_tensors(weights=stored["values"])
        if stored["values"].dim() != 4:
            raise ValueError(f"weights of shape {tuple(stored['values'].shape)}")
        is_signed = bool(settings.get("signed", False))
        own: Any = masks | {"signed": is_signed}
        return Direct(stored["values"], stored.get("added_up"), **own)
    if kind != "projected" or not {"queries", "keys"} <= stored.keys() <= {*_TENSORS}:
        raise ValueError(f"a {kind} of {sorted(stored)}")
    tensors: dict[str, Any] = {name: stored.get(name) for name in _TENSORS}
    source = Projected(
        causal=bool(settings["causal"]),
        scale=float(settings["scale"]),
        softcap=None if settings["softcap"] is None else float(settings["softcap"]),
        is_changed=bool(settings.get("is_changed", False)),
        has_sink=bool(settings.get("has_sink", False)),
        **tensors,
    )
    check_scores(source.queries, source.keys, source.mask, source.bias, source.softcap)
    covers, num_queries = source.covers, source.queries.shape[2]
    if covers is not None and (covers.dim() != 2 or not all(0 <= a < b <= num_queries for a, b in covers.tolist())):
        raise ValueError(f"blocks of tokens {covers.tolist()!r:.80} of {num_queries}")
    if source.values is not None:
        check_values(source.keys, source.values)
    return source
