"""A trace as a collection: what is in it, moved, merged, adopted by threads, and changed behind its back."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable

import pytest
import torch

from viz_core.trace import (
    AttentionCall,
    Edit,
    Trace,
    attend,
    gate,
    intervene,
    knock_out,
    mean,
    off,
    patch,
    pattern,
    record,
    record_weights,
    sharpen,
    uniform,
    window,
)


def recorded(*sites: str | None) -> Trace:
    x = torch.randn(1, 2, 3, 4)
    with record() as trace:
        for site in sites:
            attend(x, x, x, site=site)
    return trace


def test_sites_are_in_it_and_nothing_else() -> None:
    trace = recorded("encoder.0.self", None)
    assert "encoder.0.self" in trace
    assert "attention.0" in trace
    assert "attention.1" not in trace
    assert 3 not in trace
    assert len(trace) == 2
    assert [call.site for call in trace] == list(trace.sites)


def test_runs_are_merged_under_their_names() -> None:
    first, second = recorded("decoder.1.cross"), recorded("decoder.1.cross", None)
    both = Trace.merge({"before": first, "after": second})
    assert both.sites == ("before/decoder.1.cross", "after/decoder.1.cross", "after/attention.0")
    call = both["after/decoder.1.cross"]
    assert (call.kind, call.layer, call.stack) == ("cross", 1, "after/decoder")
    assert torch.equal(call.weights(), second["decoder.1.cross"].weights())
    assert both["after/attention.0"].kind == "attention"
    for name in ("", "a.b", "a/b", 1):
        with pytest.raises(ValueError, match="expected names without"):
            Trace.merge({name: first})  # type: ignore[dict-item]
    for runs in ([first, second], {"first": first["decoder.1.cross"]}):
        with pytest.raises(ValueError, match="runs: expected traces by name"):
            Trace.merge(runs)  # type: ignore[arg-type]


@pytest.mark.parametrize("torch_calls", [False, True])
def test_a_copy_made_within_the_block_is_what_was_recorded_so_far(torch_calls: bool) -> None:
    """By `copy` and on the way to another process; neither the block nor the thread goes with it."""
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


EDITS: dict[str, Callable[[AttentionCall], Edit]] = {
    "uniform": lambda _: uniform(),
    "sharpen": lambda _: sharpen(0, 0.5),
    "diagonal": lambda _: pattern(None, "diagonal"),
    "first": lambda _: pattern(1, "first"),
    "matrix": lambda _: pattern(0, torch.eye(3)),
    "knock out": lambda _: knock_out(1, query=slice(1, None), key=(0, 1)),
    "window": lambda _: window(None, 2, first=1),
    "off": lambda _: off(0),
    "gate": lambda _: gate([0], torch.tensor([0.5])),
    "mean": lambda _: mean(1, torch.ones(2, 4)),
    "patch": lambda call: patch(0, call),
    "patch output": lambda call: patch(1, call, "output", queries=slice(0, 2)),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_recording_can_be_pickled(name: str) -> None:
    x = torch.randn(1, 2, 3, 4)
    with record(values=True) as first:
        attend(x, x, x, site="encoder.0.self")
    edit = EDITS[name](first["encoder.0.self"])
    with intervene({"encoder.0.self": edit}), record(values=True) as trace:
        attend(x, x, x, site="encoder.0.self")
    again = pickle.loads(pickle.dumps(trace))
    assert torch.equal(again["encoder.0.self"].weights(), trace["encoder.0.self"].weights())


def test_moved_to_a_device_the_maps_are_the_same() -> None:
    trace = recorded(None)
    copied = trace.to("cpu")
    assert torch.equal(copied["attention.0"].weights(), trace["attention.0"].weights())
    nowhere = trace.to("meta")
    assert all(tensor.device.type == "meta" for tensor in nowhere["attention.0"].source.tensors())


def test_a_thread_records_where_it_was_told_to() -> None:
    x = torch.randn(1, 1, 3, 2)
    with record() as trace:

        def alone() -> None:
            attend(x, x, x, site="alone")

        def adopted() -> None:
            with trace.adopt() as same:
                assert same is trace
                attend(x, x, x, site="adopted")
            attend(x, x, x, site="after")

        threads = [threading.Thread(target=work) for work in (alone, adopted, adopted)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(trace.sites) == ["adopted", "adopted@2"]


# What is changed after it was recorded


@pytest.mark.parametrize("changed", ["queries", "keys", "mask", "bias"])
def test_a_change_in_place_is_noticed(changed: str) -> None:
    held = {"queries": torch.randn(1, 1, 3, 2), "keys": torch.randn(1, 1, 3, 2)}
    more = {"mask": torch.ones(1, 1, 3, 3, dtype=torch.bool), "bias": torch.zeros(1, 1, 3, 3)}
    with record() as trace:
        attend(held["queries"], held["keys"], held["keys"], **more)
    before = trace["attention.0"].weights()
    assert torch.equal(trace["attention.0"].weights(), before)
    {**held, **more}[changed].zero_()
    with pytest.raises(ValueError, match="was changed in place after it was recorded"):
        trace["attention.0"].weights()
    with pytest.raises(ValueError, match="was changed in place after it was recorded"):
        trace.to("cpu")


def test_a_cache_that_is_used_again_is_noticed() -> None:
    cache = torch.randn(1, 1, 4, 2)
    with record() as trace:
        attend(cache[:, :, :1], cache[:, :, :2], cache[:, :, :2])
    cache[:, :, 2] = 0.0  # a view of the same storage
    with pytest.raises(ValueError, match="was changed in place"):
        trace["attention.0"].weights()


def test_keys_of_a_cache_that_was_written_to_are_copied() -> None:
    x, cache = torch.randn(1, 1, 2, 2), torch.zeros(1, 1, 4, 2)
    cache[:, :, :2] = torch.randn(1, 1, 2, 2)
    with record(values=True) as trace:
        attend(x, cache[:, :, :2], cache[:, :, :2])
    before, values = trace["attention.0"].weights(), trace["attention.0"].values.clone()
    cache.zero_()
    assert torch.equal(trace["attention.0"].weights(), before)
    assert torch.equal(trace["attention.0"].values, values)


def test_a_copy_counts_its_own_changes() -> None:
    x = torch.randn(1, 1, 3, 2)
    x += 1  # counted before it was recorded
    with record() as trace:
        attend(x, x, x)
    source = trace["attention.0"].source
    for copied in (copy.deepcopy(source), pickle.loads(pickle.dumps(source))):
        assert torch.equal(copied.rows(slice(0, 1), slice(0, 3)), source.rows(slice(0, 1), slice(0, 3)))


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_comes_in_is_said_where_it_does_not_fit() -> None:
    x = torch.randn(1, 1, 3, 2)
    with pytest.raises(ValueError, match=r"weights: expected \(batch, heads, queries, keys\), got shape \(1, 3, 3\)"):
        record_weights(torch.zeros(1, 3, 3))
    with pytest.raises(ValueError, match="queries: expected a floating-point tensor, got torch.int64"):
        attend(x.long(), x, x)
    with pytest.raises(ValueError, match="keys: expected a floating-point tensor, got ndarray"):
        attend(x, x.numpy(), x)
    with pytest.raises(
        ValueError, match="queries and keys of one dtype, got queries torch.float32, keys torch.float16"
    ):
        attend(x, x.half(), x)
    with pytest.raises(ValueError, match="keys and values of one device, got keys cpu, values meta"):
        attend(x, x, x.to("meta"))
