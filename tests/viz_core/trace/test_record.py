"""Recordings: who records what, under which name, in the graph, merged, changed in place, and as files."""

import contextlib
import copy
import json
import pickle
import re
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from tests.viz_core.trace.attention_cases import B, K, Q, random_bias, random_mask, tensors
from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.trace import Trace, attend, intervene, no_recording, off, pattern, record, record_weights
from viz_core.trace.files import _check_sums, load_trace, save_trace


def test_each_call_is_recorded_by_the_innermost_block_alone() -> None:
    queries, keys, values = tensors()
    attend(queries, keys, values)
    with contextlib.suppress(RuntimeError), record() as outer:
        attend(queries, keys, values, site="before")
        with record() as inner:
            attend(queries, keys, values, site="within")
        with contextlib.suppress(ZeroDivisionError), no_recording():
            attend(queries, keys, values)
            raise ZeroDivisionError
        attend(queries, keys, values, site="after")
        raise RuntimeError
    attend(queries, keys, values)
    record_weights(torch.ones(1, 1, 1, 1))
    assert inner.sites == ("within",)
    assert outer.sites == ("before", "after")


def test_nothing_recorded_keeps_a_graph_alive() -> None:
    queries, keys, values = (each.requires_grad_() for each in tensors())
    with record() as trace:
        attend(queries, keys, values, bias=random_bias(B, 1, Q, K).requires_grad_())
        record_weights(random_bias(B, 1, Q, K).requires_grad_().softmax(dim=-1))
    assert not any(each.requires_grad for call in trace for each in (*call.source.tensors(), call.weights()))


def test_a_storage_counts_once_however_often_it_is_met() -> None:
    queries, keys, values = tensors()
    mask = random_mask(B, 1, Q, K)
    with record() as trace:
        attend(queries, keys, values, mask=mask)
        attend(queries, keys, values, mask=mask)
        attend(queries[:, :, :2], keys, values)
        attend(queries.clone(), keys, values, bias=random_bias(1, 1, 1, K))
    assert len(trace) == 4
    assert trace.nbytes == 2 * 4 * queries.numel() + 4 * keys.numel() + mask.numel() + 4 * K


def test_an_empty_recording_says_what_can_be_seen() -> None:
    advice = r"after instrument\(model\), and plain PyTorch with record\(torch_calls=model\)"
    gone = weakref.proxy(set[int]())  # as torch's compiler leaves them: its class is an error
    with record() as trace:
        F.scaled_dot_product_attention(*tensors())
    assert re.search(advice, repr(trace))
    with pytest.raises(KeyError, match="no site 'c' in this trace; it has none: .*" + advice):
        trace["c"]
    del gone


@pytest.mark.parametrize("training", [False, True])
def test_recording_changes_no_bit_of_the_output(training: bool) -> None:
    sizes = (23, 16, 24, 4, 2, 0.3)
    model = EncoderDecoder(TransformerEncoder(*sizes), TransformerDecoder(*sizes)).train(training)
    source, target = torch.randint(0, 23, (2, 6)), torch.randint(0, 23, (2, 4))

    def run() -> Tensor:
        torch.manual_seed(7)
        return model(source, target, torch.tensor([6, 3]))

    plain = run()
    with record():
        assert torch.equal(run(), plain)


CASES: dict[str, dict[str, Any]] = {
    "causal": {"causal": True},
    "mask with an empty row": {"mask": torch.tensor([[[[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]]]).bool()},
    "bias": {"bias": torch.randn(1, 4, 3, 5, generator=torch.Generator().manual_seed(1))},
    "scale": {"scale": 0.7},
    "softcap": {"softcap": 0.5},
}


@pytest.mark.parametrize("name", CASES)
def test_weights_in_the_graph_are_those_that_were_used(name: str) -> None:
    """The output is linear in them, d sum(g * (W V)) / dW = g V^T, and all gradients are the kernel's."""
    inputs = [torch.randn(2, heads, n, width) for heads, n, width in ((4, 3, 6), (2, 5, 6), (2, 5, 7))]
    q, k, v = (t.requires_grad_() for t in inputs)
    g = torch.randn(2, 4, 3, 7)
    with record() as plain:
        expected = attend(q, k, v, **CASES[name])
    with record(differentiable=True) as trace:
        found = attend(q, k, v, **CASES[name])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(trace[0].weights(), plain[0].weights(), atol=1e-6, rtol=0)
    of_weights, *others = torch.autograd.grad((g * found).sum(), [trace[0].graph_weights, q, k, v])
    torch.testing.assert_close(of_weights, g @ v.detach().repeat_interleave(2, dim=1).transpose(2, 3))
    for ours, kernels in zip(others, torch.autograd.grad((g * expected).sum(), [q, k, v]), strict=True):
        torch.testing.assert_close(ours, kernels, atol=1e-5, rtol=1e-4)


def recorded(*sites: str | None) -> Trace:
    x = torch.randn(1, 2, 3, 4)
    with record() as trace:
        for site in sites:
            attend(x, x, x, site=site)
    return trace


def test_runs_are_merged_under_their_names() -> None:
    first, second = recorded("decoder.1.cross"), recorded("decoder.1.cross", None)
    both = Trace.merge({"before": first, "after": second})
    assert both.sites == ("before/decoder.1.cross", "after/decoder.1.cross", "after/attention.0")
    call = both["after/decoder.1.cross"]
    assert (call.kind, call.layer, call.stack) == ("cross", 1, "after/decoder")
    assert torch.equal(call.weights(), second["decoder.1.cross"].weights())
    assert both["after/attention.0"].kind == "attention"
    with pytest.raises(ValueError, match="expected names without"):
        Trace.merge({"a.b": first})


@pytest.mark.parametrize("torch_calls", [False, True])
def test_a_copy_made_within_the_block_is_what_was_recorded_so_far(torch_calls: bool) -> None:
    x = torch.randn(1, 2, 3, 4)
    with record(torch_calls=torch_calls) as trace:
        attend(x, x, x)
        copies = copy.copy(trace), copy.deepcopy(trace), pickle.loads(pickle.dumps(trace))
        for _ in trace:  # while it goes on
            attend(x, x, x)
    assert trace.sites == ("attention.0", "attention.1")
    for each in copies:
        assert each.sites == ("attention.0",)
        assert torch.equal(each["attention.0"].weights(), trace["attention.0"].weights())


def test_a_thread_records_into_the_trace_of_its_context() -> None:
    x = torch.randn(1, 1, 3, 2)

    def both(site: str) -> None:
        attend(x, x, x, site=site)
        F.scaled_dot_product_attention(x[:, :, :2], x, x)

    def work(trace: Trace) -> None:
        both("alone")
        with trace.adopt():
            both("adopted")
        both("after")

    with record(torch_calls=True) as trace, ThreadPoolExecutor(2) as threads:
        list(threads.map(work, [trace, trace]))
    assert sorted(trace.sites) == ["adopted", "adopted@2", "attention.0", "attention.1"]


def test_keys_of_a_cache_that_was_written_to_are_copied() -> None:
    x, cache = torch.randn(1, 1, 2, 2), torch.zeros(1, 1, 4, 2)
    cache[:, :, :2] = torch.randn(1, 1, 2, 2)
    with record(values=True) as trace:
        attend(x, cache[:, :, :2], cache[:, :, :2])
    before, values = trace["attention.0"].weights(), trace["attention.0"].values.clone()
    cache.zero_()
    assert torch.equal(trace["attention.0"].weights(), before)
    assert torch.equal(trace["attention.0"].values, values)


@pytest.fixture
def trace() -> Trace:
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
    save_trace(Trace(), tmp_path / "run.safetensors")
    assert load_trace(tmp_path / "run.safetensors").sites == ()


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
    ({"kind": "other"}, {}),
    ({"kind": "direct"}, {}),
    ({}, {"0.keys": torch.zeros(1, 2, 3, 5)}),
    ({}, {"0.mask": torch.ones(7, 7, dtype=torch.bool)}),
    ({"settings": {"scale": 1, "causal": False, "softcap": -1}}, {}),
    ({}, {"0.queries": _X.long(), "0.keys": _X.long()}),
    ({}, {"0.mask": torch.ones(3, 3)}),
    ({}, {"0.values": torch.zeros(1)}),
    ({}, {"0.other": torch.zeros(1)}),
    ({"tensors": {"queries": "0.queries", "keys": "9.keys"}}, {}),
]


@pytest.mark.parametrize(("call", "tensors"), _NO_CALLS)
def test_what_makes_no_call_is_refused(tmp_path: Path, call: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    stored = {"0.queries": _X.clone(), "0.keys": _X.clone()} | tensors
    settings = {"scale": 1, "causal": False, "softcap": None}
    names = {name.split(".")[1]: name for name in stored}
    whole = {"site": "x", "kind": "projected", "settings": settings, "tensors": names} | call
    header = {"format": "attention-atlas trace", "version": "2", "calls": json.dumps([whole])}
    path = tmp_path / "foreign.safetensors"
    save_file(stored, path, header | {"sums": _check_sums(stored)})
    with pytest.raises(ValueError, match=f"{path}: what site 'x' holds makes no attention call: "):
        load_trace(path)


def _resaved(path: Path, change: Callable[[dict[str, Tensor], list[Any]], None]) -> Path:
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
    for content in (whole[: len(whole) // 2], b"not at all"):
        path.write_bytes(content)
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
        "[3]",
        "[" * 100_000,
        "no JSON",
    ):
        save_file({"0.queries": torch.zeros(1)}, path, {**header, "calls": calls})
        with pytest.raises(ValueError, match="its list of calls cannot be read"):
            load_trace(path)
    with pytest.raises(ValueError, match="it is a folder"):
        load_trace(tmp_path)
