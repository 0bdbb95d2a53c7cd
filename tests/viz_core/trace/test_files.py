"""Recordings as files: the same maps to the last bit, and a sentence for what is not a recording."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from viz_core.trace import attend, intervene, off, pattern, record, record_weights
from viz_core.trace.files import _check_sums, load_trace, save_trace
from viz_core.trace.trace import Trace


@pytest.fixture
def trace() -> Trace:
    """Grouped queries under a mask, a causal call with a soft cap and a bias, and weights as they were computed."""
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8)
    with record() as recorded:
        attend(q, k, k, mask=torch.rand(2, 1, 1, 7) > 0.3, site="decoder.0.cross")
        attend(q, q, q, causal=True, bias=torch.randn(1, 4, 5, 5), softcap=3.0, scale=0.5, site="decoder.0.self")
        attend(q.bfloat16(), q.bfloat16(), q.bfloat16())
        record_weights(torch.softmax(torch.randn(2, 1, 3, 6), dim=-1), "decoder.1.cross")
    return recorded


def test_what_was_saved_gives_the_same_maps(trace: Trace, tmp_path: Path) -> None:
    save_trace(trace, tmp_path / "run.safetensors")
    loaded = load_trace(tmp_path / "run.safetensors")
    assert loaded.sites == trace.sites
    for before, after in zip(trace, loaded, strict=True):
        assert torch.equal(after.weights(), before.weights())
        assert torch.equal(
            after.weights(queries=slice(1, 3), keys=slice(0, 2)), before.weights(queries=slice(1, 3), keys=slice(0, 2))
        )
        assert torch.equal(after.overview(3), before.overview(3))


def test_what_calls_share_is_written_and_read_once(tmp_path: Path) -> None:
    """One bias for six layers, as in T5; the same tensor as queries, keys and values; parts of one projection."""
    x, bias = torch.randn(1, 4, 64, 8), torch.randn(1, 4, 64, 64)
    parts = torch.randn(3, 1, 4, 64, 8)
    with record(values=True) as shared:
        for _ in range(6):
            attend(x, x, x, bias=bias)
        attend(*parts.unbind())
    path = tmp_path / "shared.safetensors"
    save_trace(shared, path)
    loaded, copied = load_trace(path), shared.to("meta")
    assert shared.nbytes == x.nbytes + bias.nbytes + parts.nbytes
    assert path.stat().st_size < shared.nbytes + 4096
    assert loaded.nbytes == shared.nbytes
    there = {id(tensor): tensor.device.type for call in copied for tensor in call.source.tensors()}
    assert [*there.values()] == ["meta"] * (2 + 3)
    for before, after in zip(shared, loaded, strict=True):
        assert torch.equal(after.weights(), before.weights())
        assert torch.equal(after.values, before.values)


def test_edited_heads_are_saved_as_their_maps(tmp_path: Path) -> None:
    x = torch.randn(1, 2, 3, 4)
    edits = {"attention.0": [off(0), pattern(1, torch.tensor([[0.5, 0.5, 0.0]]).expand(3, 3))]}
    with intervene(edits), record(values=True) as trace:
        attend(x, x, x)
    save_trace(trace, tmp_path / "edited.safetensors")
    loaded = load_trace(tmp_path / "edited.safetensors")["attention.0"]
    assert torch.equal(loaded.weights()[0, :, 0], torch.tensor([[0, 0, 0], [0.5, 0.5, 0.0]]))
    assert torch.equal(loaded.weights(), trace["attention.0"].weights())
    assert torch.equal(loaded.values, x)


def test_shapes_alone_are_recorded_and_have_no_numbers(tmp_path: Path) -> None:
    """A model on the device meta: what a recording would hold, before there is memory for it."""
    x = torch.randn(1, 2, 3, 4, device="meta")
    with record() as trace:
        assert attend(x, x, x, softcap=1.0).shape == x.shape
    assert "2 heads      3 queries      3 keys" in trace.summary()
    for read in (trace["attention.0"].weights, trace["attention.0"].overview):
        with pytest.raises(ValueError, match="expected a recording with numbers"):
            read()
    with pytest.raises(ValueError, match="site 'attention.0': expected numbers to save"):
        save_trace(trace, tmp_path / "run.safetensors")


@pytest.mark.usefixtures("shapes_unchecked")
def test_numbers_of_numpy_are_numbers_and_an_empty_recording_stays_empty(tmp_path: Path) -> None:
    x, path = torch.randn(1, 2, 3, 4), tmp_path / "run.safetensors"
    with record() as trace:
        attend(x, x, x, scale=np.float32(0.3), softcap=np.float64(2.0), causal=np.bool_(True))  # type: ignore[arg-type]
    save_trace(trace, path)
    assert torch.equal(load_trace(path)["attention.0"].weights(), trace["attention.0"].weights())
    save_trace(Trace(), path)
    assert load_trace(path).sites == ()


def test_a_recording_may_replace_the_file_it_came_from(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    save_trace(trace, path)
    loaded = load_trace(path)
    save_trace(Trace.merge({"first": loaded, "second": loaded}), path)
    twice = load_trace(path)
    for call in trace:
        for later in (loaded[call.site], twice[f"first/{call.site}"], twice[f"second/{call.site}"]):
            assert torch.equal(later.weights(), call.weights())


@pytest.mark.parametrize("place", [0.2, 0.5, 0.99])
def test_one_changed_bit_is_noticed(trace: Trace, tmp_path: Path, place: float) -> None:
    path = tmp_path / "run.safetensors"
    save_trace(trace, path)
    whole = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(whole[:8], "little")
    whole[start + int(place * (len(whole) - start))] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="its numbers are not those that were saved"):
        load_trace(path)


_X = torch.zeros(1, 2, 3, 4)
_NO_CALLS: list[tuple[dict[str, Any], dict[str, Tensor]]] = [  # what is changed of a call, and of its tensors
    ({"settings": {}}, {}),
    ({"settings": {"scale": "big", "causal": False, "softcap": None}}, {}),
    ({"settings": {"scale": 1, "causal": False, "softcap": -1}}, {}),
    ({"kind": "other"}, {}),
    ({"kind": "direct"}, {}),
    ({}, {"0.keys": torch.zeros(1, 2, 3, 5)}),
    ({}, {"0.queries": _X.long(), "0.keys": _X.long()}),
    ({}, {"0.mask": torch.ones(7, 7, dtype=torch.bool)}),
    ({}, {"0.mask": torch.ones(3, 3)}),
    ({}, {"0.values": torch.zeros(1)}),
    ({}, {"0.other": torch.zeros(1)}),
    ({"tensors": {"queries": "0.queries", "keys": "9.keys"}}, {}),
]


@pytest.mark.parametrize(("call", "tensors"), _NO_CALLS)
def test_what_makes_no_call_is_refused(tmp_path: Path, call: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    stored = {"0.queries": _X.clone(), "0.keys": _X.clone()} | tensors
    whole = {
        "site": "x",
        "kind": "projected",
        "settings": {"scale": 1, "causal": False, "softcap": None},
        "tensors": {name.split(".")[1]: name for name in stored},
    } | call
    header = {"format": "attention-atlas trace", "version": "2", "calls": json.dumps([whole])}
    path = tmp_path / "foreign.safetensors"
    save_file(stored, path, header | {"sums": _check_sums(stored)})
    with pytest.raises(ValueError, match=f"{path}: what site 'x' holds makes no attention call: "):
        load_trace(path)


def _resaved(path: Path, change: Callable[[dict[str, Tensor], list[Any]], None]) -> Path:
    """A recording whose tensors and calls were changed, with sums that are right."""
    with safe_open(path, framework="pt") as file:
        header, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    calls = json.loads(header["calls"])
    change(tensors, calls)
    header |= {"calls": json.dumps(calls), "sums": _check_sums(tensors)}
    save_file(tensors, path, metadata=header)
    return path


@pytest.mark.attack("models")
def test_very_many_calls_and_sides_without_numbers_are_refused(trace: Trace, tmp_path: Path) -> None:
    def repeat(_tensors: dict[str, Tensor], calls: list[Any]) -> None:
        calls[:] = [calls[0] | {"site": f"s{number}"} for number in range(10_001)]

    def stretch(tensors: dict[str, Tensor], _calls: list[Any]) -> None:
        tensors[next(iter(tensors))] = torch.zeros(1, 1, 2**40, 0)

    for change, why in ((repeat, "at most 10,000 calls"), (stretch, "along each side")):
        save_trace(trace, path := tmp_path / "some.trace")
        with pytest.raises(ValueError, match=why):
            load_trace(_resaved(path, change))


def test_what_is_no_recording_says_so(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    save_trace(trace, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is not a recording that can be read"):
        load_trace(path)
    path.write_bytes(b"not at all")
    with pytest.raises(ValueError, match="is not a recording that can be read"):
        load_trace(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match="but safetensors of something else"):
        load_trace(path)
    header = {"format": "attention-atlas trace", "version": "2"}
    for version in ("1", "9"):
        save_file({"0.queries": torch.zeros(1)}, path, {**header, "calls": "[]", "version": version})
        with pytest.raises(ValueError, match=f"expected version 2 of the format, got {version}"):
            load_trace(path)
    for calls in (
        '[{"site": 1}]',
        '[{"site": "x", "kind": "direct", "settings": {}}]',
        "3",
        "[3]",
        '{"a": 1}',
        "[" * 100_000,
        "no JSON",
    ):
        save_file({"0.queries": torch.zeros(1)}, path, {**header, "calls": calls})
        with pytest.raises(ValueError, match="its list of calls cannot be read"):
            load_trace(path)
    with pytest.raises(ValueError, match="it is a folder"):
        load_trace(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_trace(tmp_path / "nowhere.safetensors")
    with pytest.raises(FileNotFoundError, match="expected a folder to write to"):
        save_trace(trace, tmp_path / "nowhere" / "run.safetensors")
    with pytest.raises(IsADirectoryError, match="expected a file to write"):
        save_trace(trace, tmp_path)
