"""The trace: who records what, under which name, what it holds, and in the graph."""

from __future__ import annotations

import contextlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.viz_core.trace.attention_cases import B, H, K, Q, brute_force, random_bias, random_mask, tensors
from viz_core.attention import DotProductAttention, MultiHeadAttention
from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.trace import attend, name_site, no_recording, record, record_weights


def test_an_unrecorded_block_leaves_no_trace_and_ends_where_it_ends() -> None:
    with record() as trace:
        with contextlib.suppress(RuntimeError), no_recording():
            attend(*tensors())
            raise RuntimeError
        attend(*tensors(), site="after")
    assert trace.sites == ("after",)


def test_bytes_are_those_of_queries_and_keys() -> None:
    n, width, heads = 512, 32, 4
    layer = MultiHeadAttention(width, heads).eval()
    X = torch.randn(1, n, width)
    with record() as trace:
        layer(X, X, X, torch.tensor([400]))
    # two projections in float32 and one boolean for each key
    assert trace.nbytes == 2 * n * width * 4 + n
    assert trace.nbytes < heads * n * n * 4 / 30


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


def test_sites_in_call_order() -> None:
    model = translator()
    source, target = torch.randint(0, 23, (2, 5)), torch.randint(0, 23, (2, 3))
    with record() as trace:
        model(source, target, torch.tensor([5, 2]))
    assert trace.sites == (
        "encoder.0.self",
        "encoder.1.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    )
    assert len(trace) == 6
    assert [call.site for call in trace] == list(trace.sites)
    cross = trace["decoder.1.cross"]
    assert (cross.stack, cross.layer, cross.kind) == ("decoder", 1, "cross")
    assert (cross.num_heads, cross.num_queries, cross.num_keys) == (4, 3, 5)
    assert (trace["encoder.0.self"].kind, trace["encoder.0.self"].layer) == ("self", 0)


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


def test_a_layer_by_itself_has_a_site_of_its_own() -> None:
    X = torch.randn(1, 3, 8)
    with record() as trace:
        MultiHeadAttention(8, 2)(X, X, X)
        DotProductAttention()(X, X, X)
    assert trace.sites == ("attention.0", "attention.1")
    assert (trace["attention.1"].kind, trace["attention.1"].layer) == ("attention", 1)
    assert (trace["attention.0"].num_heads, trace["attention.1"].num_heads) == (2, 1)


def test_an_empty_recording_says_what_can_be_seen() -> None:
    advice = r"after instrument\(model\), and plain PyTorch with record\(torch_calls=model\)"
    with record() as trace:
        F.scaled_dot_product_attention(*tensors())
    assert re.search(advice, repr(trace))
    assert re.search(advice, trace.summary())
    with pytest.raises(KeyError, match="no site 'c' in this trace; it has none: .*" + advice):
        trace["c"]


def test_nothing_is_recorded_outside_the_block() -> None:
    queries, keys, values = tensors()
    attend(queries, keys, values)
    with record() as trace:
        pass
    attend(queries, keys, values)
    record_weights(torch.ones(1, 1, 1, 1))
    assert trace.sites == ()
    with contextlib.suppress(RuntimeError), record() as broken:
        attend(queries, keys, values)
        raise RuntimeError
    attend(queries, keys, values)
    assert broken.sites == ("attention.0",)


def test_a_nested_block_has_its_calls_to_itself() -> None:
    queries, keys, values = tensors()
    with record() as outer:
        attend(queries, keys, values, site="before")
        with record() as inner:
            attend(queries, keys, values, site="within")
        attend(queries, keys, values, site="after")
    assert inner.sites == ("within",)
    assert outer.sites == ("before", "after")


def test_eight_threads_on_one_model_equal_serial_calls() -> None:
    model = translator()
    draw = torch.Generator().manual_seed(6)
    inputs = [
        (
            torch.randint(0, 23, (1, 3 + i % 5), generator=draw),
            torch.randint(0, 23, (1, 2 + i % 4), generator=draw),
            torch.tensor([2 + i % 2]),
        )
        for i in range(20)
    ]

    def answer(i: int) -> tuple[Tensor, dict[str, Tensor]]:
        source, target, valid_lens = inputs[i % len(inputs)]
        with torch.no_grad(), record() as trace:
            logits = model(source, target, valid_lens)
        return logits, {call.site: call.weights() for call in trace}

    serial = [answer(i) for i in range(len(inputs))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as threads:
            parallel = list(threads.map(answer, range(4 * len(inputs))))
    finally:
        sys.setswitchinterval(interval)
    for i, (logits, maps) in enumerate(parallel):
        expected_logits, expected_maps = serial[i % len(inputs)]
        assert torch.equal(logits, expected_logits)
        assert list(maps) == list(expected_maps)
        assert all(torch.equal(maps[site], expected_maps[site]) for site in maps)
    assert not torch.equal(serial[0][1]["encoder.0.self"], serial[5][1]["encoder.0.self"])


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


def test_recording_in_inference_mode_can_be_read_outside() -> None:
    queries, keys, values = tensors()
    with torch.inference_mode(), record() as trace:
        attend(queries * 1, keys * 1, values * 1, mask=random_mask(B, 1, 1, K))
    expected = brute_force(queries, keys, mask=random_mask(B, 1, 1, K))
    torch.testing.assert_close(trace["attention.0"].weights().double(), expected, atol=1e-6, rtol=0)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("queries", "keys", "values", "options", "message"),
    [
        ((2, 3, 4), (2, 1, 3, 4), (2, 1, 3, 4), {}, r"expected .*\(batch, heads, n, width\), got \[\(2, 3, 4\)"),
        ((2, 1, 3, 4), (2, 1, 3, 5), (2, 1, 3, 4), {}, "queries and keys of one width, got 4 and 5"),
        ((2, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4), {}, "queries and keys of one batch size, got 2 and 1"),
        ((2, 1, 3, 4), (2, 1, 3, 4), (2, 1, 2, 4), {}, r"one value for each key, got shapes \(2, 1, 3, 4\) and"),
        ((2, 4, 3, 4), (2, 3, 3, 4), (2, 3, 3, 4), {}, "key heads to divide query heads, got 3 and 4"),
        ((1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4), {"softcap": 0.0}, "softcap: expected a positive number, got 0.0"),
        ((1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4), {"softcap": -1.0}, "softcap: expected a positive number"),
        ((1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4), {"mask": torch.zeros(3, 3)}, "mask: expected booleans.* got float"),
        (
            (2, 1, 3, 4),
            (2, 1, 5, 4),
            (2, 1, 5, 4),
            {"mask": torch.ones(2, 1, 3, 4, dtype=torch.bool)},
            r"mask: expected a shape that broadcasts to \(2, 1, 3, 5\), got \(2, 1, 3, 4\)",
        ),
        (
            (1, 2, 3, 4),
            (1, 2, 3, 4),
            (1, 2, 3, 4),
            {"bias": torch.ones(2, 2, 3, 3)},
            r"bias: expected a shape that broadcasts to \(1, 2, 3, 3\), got \(2, 2, 3, 3\)",
        ),
    ],
)
def test_refuses_what_does_not_fit(
    queries: tuple[int, ...], keys: tuple[int, ...], values: tuple[int, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        attend(torch.zeros(queries), torch.zeros(keys), torch.zeros(values), **options)


SOME = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]).bool()
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "mask with an empty row": {"mask": SOME[None, None]},
    "bias": {"bias": torch.randn(1, 4, 3, 5, generator=torch.Generator().manual_seed(1))},
    "scale": {"scale": 0.7},
    "softcap": {"softcap": 0.5},
}


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Four query heads on two key heads."""
    return torch.randn(2, 4, 3, 6), torch.randn(2, 2, 5, 6), torch.randn(2, 2, 5, 7)


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_weights_are_those_of_the_kernel(name: str) -> None:
    q, k, v = inputs()
    with record() as plain:
        expected = attend(q, k, v, site="a.0.self", **CASES[name])
    with record(differentiable=True) as trace:
        found = attend(q, k, v, site="a.0.self", **CASES[name])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(trace["a.0.self"].weights(), plain["a.0.self"].weights(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", CASES)
def test_the_output_is_linear_in_the_weights(name: str) -> None:
    """d sum(g * (W V)) / dW = g V^T, whatever made the weights."""
    q, k, v = inputs()
    g = torch.randn(2, 4, 3, 7)
    with record(differentiable=True) as trace:
        out = attend(q, k, v, **CASES[name])
    (found,) = torch.autograd.grad((g * out).sum(), [trace["attention.0"].graph_weights])
    torch.testing.assert_close(found, g @ v.repeat_interleave(2, dim=1).transpose(2, 3))


def test_gradients_still_reach_queries_keys_and_values() -> None:
    q, k, v = (t.requires_grad_() for t in inputs())
    expected = torch.autograd.grad(attend(q, k, v).sin().sum(), [q, k, v])
    with record(differentiable=True):
        found = torch.autograd.grad(attend(q, k, v).sin().sum(), [q, k, v])
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
