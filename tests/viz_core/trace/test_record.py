"""Recordings: who records what, under which name, what a trace holds, in the graph, merged, and changed in place."""

import contextlib
import copy
import pickle
import re
import threading
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.viz_core.trace.attention_cases import B, H, K, Q, brute_force, random_bias, random_mask, tensors
from viz_core.attention import DotProductAttention
from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.trace import Trace, attend, name_site, no_recording, record, record_weights


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
    assert "before" in outer
    assert "within" not in outer


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


def test_nothing_recorded_keeps_a_graph_alive() -> None:
    queries, keys, values = (t.requires_grad_() for t in tensors())
    bias = random_bias(1, H, Q, K).requires_grad_()
    with record() as trace:
        attend(queries, keys, values, bias=bias)
        record_weights(torch.softmax(bias, dim=-1))
    assert not any(t.requires_grad for call in trace for t in call.source.tensors())
    assert not any(call.weights().requires_grad for call in trace)


def translator(seed: int = 0) -> EncoderDecoder:
    torch.manual_seed(seed)
    sizes = (23, 16, 24, 4, 2, 0.3)
    return EncoderDecoder(TransformerEncoder(*sizes), TransformerDecoder(*sizes)).eval()


def test_a_site_called_again_is_numbered() -> None:
    queries, keys, values = tensors()
    layer = DotProductAttention()
    name_site(layer, "encoder.3.self")
    with record() as trace:
        for scale in (1.0, 2.0, 3.0):
            attend(queries, keys, values, site="encoder.3.self", scale=scale)
        layer(queries[:, 0], keys[:, 0], values[:, 0])
        attend(queries, keys, values, site="other")
    assert trace.sites == ("encoder.3.self", "encoder.3.self@2", "encoder.3.self@3", "encoder.3.self@4", "other")
    third = trace["encoder.3.self@3"]
    assert (third.stack, third.layer, third.kind) == ("encoder", 3, "self")
    torch.testing.assert_close(third.weights().double(), brute_force(queries, keys, scale=3.0), atol=1e-6, rtol=0)


def test_an_empty_recording_says_what_can_be_seen() -> None:
    advice = r"after instrument\(model\), and plain PyTorch with record\(torch_calls=model\)"
    import transformers  # whose models in memory are looked for

    assert transformers.PreTrainedModel
    gone = weakref.proxy(set[int]())  # as torch's compiler leaves them: to ask for its class is an error
    with record() as trace:
        F.scaled_dot_product_attention(*tensors())
    assert re.search(advice, repr(trace))
    assert re.search(advice, trace.summary())
    with pytest.raises(KeyError, match="no site 'c' in this trace; it has none: .*" + advice):
        trace["c"]
    del gone


@pytest.mark.parametrize("training", [False, True])
def test_recording_changes_no_bit_of_the_output(training: bool) -> None:
    model = translator().train(training)
    source, target = torch.randint(0, 23, (2, 6)), torch.randint(0, 23, (2, 4))

    def run() -> Tensor:
        torch.manual_seed(7)
        return model(source, target, torch.tensor([6, 3]))

    plain = run()
    with record():
        while_recorded = run()
    assert torch.equal(plain, while_recorded)
    assert torch.equal(plain, run())


SOME = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]).bool()
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "mask with an empty row": {"mask": SOME[None, None]},
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


def test_a_thread_records_into_the_trace_of_its_context() -> None:
    """Both our own calls and those of plain PyTorch."""
    x = torch.randn(1, 1, 3, 2)

    def both(site: str) -> None:
        attend(x, x, x, site=site)
        F.scaled_dot_product_attention(x[:, :, :2], x, x)

    with record(torch_calls=True) as trace:

        def work() -> None:
            both("alone")
            with trace.adopt() as same:
                assert same is trace
                both("adopted")
            both("after")

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(trace.sites) == ["adopted", "adopted@2", "attention.0", "attention.1"]


# What is changed after it was recorded


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
