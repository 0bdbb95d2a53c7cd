"""Recordings as files: the same maps to the last bit, and a sentence for what is no recording."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from viz_core.trace import attend, record, record_weights
from viz_core.trace.files import load_trace, save_trace
from viz_core.trace.recording import Trace


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


def test_an_empty_recording_stays_empty(tmp_path: Path) -> None:
    with record() as nothing:
        pass
    save_trace(nothing, tmp_path / "empty.safetensors")
    assert load_trace(tmp_path / "empty.safetensors").sites == ()


def test_tensors_that_share_memory_are_saved_each(tmp_path: Path) -> None:
    x = torch.randn(1, 2, 3, 4)
    with record() as shared:
        attend(x, x, x)
        attend(x, x, x)
    save_trace(shared, tmp_path / "shared.safetensors")
    assert torch.equal(
        load_trace(tmp_path / "shared.safetensors")["attention.1"].weights(), shared["attention.1"].weights()
    )


def test_what_is_no_recording_says_so(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    save_trace(trace, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is no recording that can be read"):
        load_trace(path)
    path.write_bytes(b"not at all")
    with pytest.raises(ValueError, match="is no recording that can be read"):
        load_trace(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match="but safetensors of something else"):
        load_trace(path)
    header = {"format": "attention-atlas trace", "version": "1"}
    save_file({"0.queries": torch.zeros(1)}, path, {**header, "calls": "[]", "version": "9"})
    with pytest.raises(ValueError, match="expected version 1 of the format, got 9"):
        load_trace(path)
    save_file({"0.queries": torch.zeros(1)}, path, {**header, "calls": '[{"site": 1}]'})
    with pytest.raises(ValueError, match="its list of calls cannot be read"):
        load_trace(path)
    call = '[{"site": "x", "kind": "projected", "settings": {"scale": 1}}]'
    save_file({"0.queries": torch.zeros(1, 1, 1, 1)}, path, {**header, "calls": call})
    with pytest.raises(ValueError, match="the tensors of site 'x' do not make an attention call"):
        load_trace(path)
    with pytest.raises(FileNotFoundError):
        load_trace(tmp_path / "nowhere.safetensors")
