"""The trace: exact weights whole, in tiles and as thumbnails; who records what; what it holds."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core import trace as trace_module
from viz_core.attention import DotProductAttention, MultiHeadAttention
from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.trace import AttentionCall, Trace, attend, record, record_weights, unrecorded

B, H, Q, K, D, V = 2, 4, 7, 9, 5, 6


def brute_force(
    queries: Tensor,
    keys: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Every weight by itself, over plain Python floats."""
    batch, heads, num_queries, d = queries.shape
    key_heads, num_keys = keys.shape[1:3]
    scale = 1 / math.sqrt(d) if scale is None else scale
    shape = (batch, heads, num_queries, num_keys)
    allowed = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    added = torch.zeros(shape) if bias is None else bias.expand(shape)
    weights = torch.zeros(shape, dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(num_queries):
                k = keys[b, h * key_heads // heads]
                last = i + num_keys - num_queries if causal else num_keys - 1
                seen = [j for j in range(num_keys) if j <= last and allowed[b, h, i, j]]
                products = {j: float(queries[b, h, i].double() @ k[j].double()) for j in seen}
                scores = {j: scale * product for j, product in products.items()}
                if softcap is not None:
                    scores = {j: softcap * math.tanh(score / softcap) for j, score in scores.items()}
                powers = {j: math.exp(score + float(added[b, h, i, j])) for j, score in scores.items()}
                total = sum(powers.values()) or 1.0
                for j, power in powers.items():
                    weights[b, h, i, j] = power / total
    return weights


def tensors(heads: int = H, key_heads: int = H, num_queries: int = Q, num_keys: int = K) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(3)
    shapes = [(B, heads, num_queries, D), (B, key_heads, num_keys, D), (B, key_heads, num_keys, V)]
    return tuple(torch.randn(*shape, generator=draw) for shape in shapes)


def random_mask(*shape: int) -> Tensor:
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(4)) < 0.6
    mask[..., 0] = True
    return mask


def random_bias(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def with_an_empty_row() -> Tensor:
    mask = random_mask(B, 1, Q, K)
    mask[1, 0, 2] = False
    return mask


CASES: dict[str, tuple[tuple[Tensor, ...], dict[str, Any]]] = {
    "plain": (tensors(), {}),
    "scale": (tensors(), {"scale": 0.3}),
    "grouped": (tensors(key_heads=2), {}),
    "one key head": (tensors(key_heads=1), {"mask": random_mask(B, 1, Q, K)}),
    "causal square": (tensors(num_keys=Q), {"causal": True}),
    "causal, cached keys": (tensors(), {"causal": True}),
    "causal, more queries than keys": (tensors(num_queries=K, num_keys=Q), {"causal": True}),
    "causal, one new step": (tensors(num_queries=1), {"causal": True}),
    "padding": (tensors(), {"mask": random_mask(B, 1, 1, K)}),
    "mask for each head": (tensors(), {"mask": random_mask(1, H, Q, K)}),
    "empty row": (tensors(), {"mask": with_an_empty_row()}),
    "bias": (tensors(), {"bias": random_bias(1, H, Q, K)}),
    "bias for all heads": (tensors(), {"bias": random_bias(B, 1, 1, K)}),
    "bias and mask": (tensors(), {"bias": random_bias(1, H, Q, K), "mask": with_an_empty_row()}),
    "additive mask": (tensors(), {"bias": random_bias(B, 1, Q, K).masked_fill(~with_an_empty_row(), -torch.inf)}),
    "everything": (
        tensors(key_heads=2),
        {"bias": random_bias(1, H, 1, K), "mask": random_mask(B, 1, 1, K), "causal": True, "scale": 0.7},
    ),
    "soft cap": (tensors(), {"softcap": 0.5}),
    "soft cap and everything": (
        tensors(key_heads=2),
        {
            "bias": random_bias(1, H, Q, K),
            "mask": with_an_empty_row(),
            "causal": True,
            "scale": 0.7,
            "softcap": 1.5,
        },
    ),
}


def recorded(case: str) -> tuple[AttentionCall, Tensor]:
    (queries, keys, values), options = CASES[case]
    with record() as trace:
        output = attend(queries, keys, values, **options)
    return trace["attention.0"], output


@pytest.fixture(params=[None, 1, 3 * H * B * K], ids=["one block", "row by row", "three rows"])
def block_budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of the usual size, of one row, and of three rows."""
    if request.param is not None:
        monkeypatch.setattr(trace_module, "_BLOCK_SCORES", request.param)


# Soft caps and silence


def test_a_soft_cap_keeps_the_strongest_score_within_it() -> None:
    queries, keys = torch.tensor([[[[10.0]]]]), torch.tensor([[[[10.0], [-10.0]]]])
    with record() as trace:
        attend(queries, keys, torch.ones(1, 1, 2, 1), scale=1.0, softcap=0.5)
    odds = math.exp(0.5 - -0.5)  # scores of +100 and -100, capped to +0.5 and -0.5
    expected = torch.tensor([odds / (1 + odds), 1 / (1 + odds)])
    torch.testing.assert_close(trace["attention.0"].weights()[0, 0, 0], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("case", ["soft cap", "soft cap and everything"])
def test_soft_capped_attention_is_the_same_in_blocks_and_can_be_trained(case: str, block_budget: None) -> None:
    tensors_of_case, options = CASES[case]
    queries, keys, values = (t.clone().requires_grad_() for t in tensors_of_case)
    output = attend(queries, keys, values, **options)
    weights = brute_force(queries.detach(), keys.detach(), **options)
    spread = values.detach().double().repeat_interleave(H // values.shape[1], dim=1)
    torch.testing.assert_close(output.detach().double(), weights @ spread, atol=1e-5, rtol=0)
    output.sum().backward()
    torch.testing.assert_close(
        values.grad.double(),
        weights.sum(dim=2)[..., None].expand_as(spread).reshape(B, values.shape[1], -1, K, V).sum(dim=2),
        atol=1e-5,
        rtol=0,
    )
    assert queries.grad is not None
    assert bool(queries.grad.isfinite().all())


@pytest.mark.parametrize("softcap", [0.0, -1.0])
def test_a_soft_cap_must_be_positive(softcap: float) -> None:
    with pytest.raises(ValueError, match="softcap: expected a positive number"):
        attend(*tensors(), softcap=softcap)


def test_an_unrecorded_block_leaves_no_trace_and_ends_where_it_ends() -> None:
    with record() as trace:
        with contextlib.suppress(RuntimeError), unrecorded():
            attend(*tensors())
            raise RuntimeError
        attend(*tensors(), site="after")
    assert trace.sites == ("after",)


# Weights


@pytest.mark.parametrize("case", CASES)
def test_weights_equal_brute_force_and_make_the_output(case: str) -> None:
    (queries, keys, values), options = CASES[case]
    call, output = recorded(case)
    expected = brute_force(queries, keys, **options)
    weights = call.weights()
    assert weights.dtype == torch.float32
    assert (call.num_heads, call.num_queries, call.num_keys) == tuple(expected.shape[1:])
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=0)
    spread = values.double().repeat_interleave(H // values.shape[1], dim=1)
    torch.testing.assert_close(output.double(), expected @ spread, atol=1e-5, rtol=0)


def test_a_row_that_sees_nothing_is_zeros_in_weights_and_output() -> None:
    for case in ("empty row", "bias and mask", "additive mask"):
        call, output = recorded(case)
        assert torch.equal(call.weights()[1, :, 2], torch.zeros(H, K)), case
        assert torch.equal(output[1, :, 2], torch.zeros(H, V)), case
    call, output = recorded("causal, more queries than keys")
    assert torch.equal(call.weights()[:, :, : K - Q], torch.zeros(B, H, K - Q, Q))
    assert torch.equal(output[:, :, : K - Q], torch.zeros(B, H, K - Q, V))


def test_a_row_that_sees_nothing_gives_finite_gradients() -> None:
    (queries, keys, values), options = CASES["bias and mask"]
    leaves = [t.clone().requires_grad_() for t in (queries, keys, values, options["bias"])]
    attend(*leaves[:3], mask=options["mask"], bias=leaves[3]).square().sum().backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
        assert leaf.grad.abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_give_float32_weights_of_the_rounded_inputs(dtype: torch.dtype) -> None:
    queries, keys, values = (t.to(dtype) for t in tensors(key_heads=2))
    bias = random_bias(1, H, Q, K).to(dtype)
    mask = with_an_empty_row()
    with record() as trace:
        output = attend(queries, keys, values, mask=mask, bias=bias)
    weights = trace["attention.0"].weights()
    assert weights.dtype == torch.float32
    assert output.dtype == dtype
    torch.testing.assert_close(weights.double(), brute_force(queries, keys, mask, bias), atol=1e-6, rtol=0)
    rounding = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-5}[dtype]
    expected = weights.double() @ values.double().repeat_interleave(2, dim=1)
    torch.testing.assert_close(output.double(), expected, atol=rounding, rtol=0)


# Tiles


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("block_budget")
def test_every_tile_is_the_slice_of_the_full_map(case: str) -> None:
    call, _ = recorded(case)
    full = call.weights()
    q, k = call.num_queries, call.num_keys
    rows = [None, slice(0, 1), slice(2, 5), slice(-3, None), slice(0, q, 2), slice(1, q, 3), slice(4, 4), slice(0, 999)]
    columns = [None, slice(0, 1), slice(3, 6), slice(-2, None), slice(1, k, 2), slice(5, 5)]
    heads = [None, 0, H - 1, -1, -H, slice(1, 3), slice(-2, None), slice(2, 2)]
    for head in heads:
        for row in rows:
            for column in columns:
                tile = call.weights(head=head, queries=row, keys=column)
                sliced = full[:, slice(None) if head is None else head]
                sliced = sliced[..., row or slice(None), column or slice(None)]
                assert tile.shape == sliced.shape
                torch.testing.assert_close(tile, sliced, atol=2e-7, rtol=0)


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(list(CASES)),
    st.integers(-H, H - 1),
    st.integers(-12, 12),
    st.integers(-12, 12),
    st.integers(1, 4),
    st.integers(-12, 12),
    st.integers(1, 4),
)
def test_any_slice_is_a_tile(case: str, head: int, start: int, stop: int, step: int, first: int, stride: int) -> None:
    call, _ = recorded(case)
    queries, keys = slice(start, stop, step), slice(first, None, stride)
    tile = call.weights(head=head, queries=queries, keys=keys)
    torch.testing.assert_close(tile, call.weights()[:, head, queries, keys], atol=2e-7, rtol=0)


def test_a_tile_is_normalised_over_all_keys() -> None:
    call, _ = recorded("plain")
    tile = call.weights(head=1, keys=slice(0, 4))
    rest = call.weights(head=1, keys=slice(4, None))
    assert tile.sum(-1).max() < 1
    torch.testing.assert_close(tile.sum(-1) + rest.sum(-1), torch.ones(B, Q))


@pytest.mark.parametrize("head", [H, -H - 1, 99])
def test_there_is_no_such_head(head: int) -> None:
    call, _ = recorded("plain")
    with pytest.raises(IndexError, match=f"head: expected 0 to {H - 1}, got {head}"):
        call.weights(head=head)
    with pytest.raises(IndexError, match="expected a slice of neighbours, got step 2"):
        call.weights(head=slice(0, 4, 2))


# Thumbnails


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 64])
@pytest.mark.usefixtures("block_budget")
def test_overview_is_torchs_adaptive_max_pooling(case: str, size: int) -> None:
    call, _ = recorded(case)
    expected = F.adaptive_max_pool2d(call.weights(), (min(size, call.num_queries), min(size, call.num_keys)))
    torch.testing.assert_close(call.overview(size), expected, atol=2e-7, rtol=0)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 45))
def test_overview_for_any_lengths(num_queries: int, num_keys: int, size: int) -> None:
    draw = torch.Generator().manual_seed(num_queries)
    with record() as trace:
        record_weights(torch.rand(1, 2, num_queries, num_keys, generator=draw))
    (call,) = trace
    expected = F.adaptive_max_pool2d(call.weights(), (min(size, num_queries), min(size, num_keys)))
    assert torch.equal(call.overview(size), expected)


def test_overview_of_a_long_map_finds_its_one_strong_weight() -> None:
    queries = torch.zeros(1, 1, 1000, 2)
    keys = torch.zeros(1, 1, 1000, 2)
    queries[0, 0, 617, 0] = keys[0, 0, 401, 0] = 10.0
    with record() as trace:
        attend(queries, keys, keys, scale=1.0)
    thumbnail = trace["attention.0"].overview(10)
    assert thumbnail.shape == (1, 1, 10, 10)
    assert thumbnail[0, 0, 6, 4] == pytest.approx(1.0)
    thumbnail[0, 0, 6, 4] = 0
    assert thumbnail.max() == pytest.approx(1e-3)


@pytest.mark.parametrize("size", [0, -1])
def test_overview_needs_a_size(size: int) -> None:
    call, _ = recorded("plain")
    with pytest.raises(ValueError, match=f"size: expected at least 1, got {size}"):
        call.overview(size)


def test_a_map_is_never_built_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget of 100 rows no block of scores holds more of them."""
    with record() as trace:
        attend(torch.randn(1, 2, 1000, 4), torch.randn(1, 2, 1000, 4), torch.randn(1, 2, 1000, 4))
    monkeypatch.setattr(trace_module, "_BLOCK_SCORES", 100 * 2 * 1000)
    largest, softmax = 0, torch.softmax

    def watched(scores: Tensor, dim: int) -> Tensor:
        nonlocal largest
        largest = max(largest, scores.numel())
        return softmax(scores, dim=dim)

    monkeypatch.setattr(torch, "softmax", watched)
    call = trace["attention.0"]
    call.overview(3)
    assert largest == 100 * 2 * 1000
    call.weights()
    assert largest == 100 * 2 * 1000
    call.weights(head=0, queries=slice(0, 500))
    assert largest == 200 * 1 * 1000


# What a trace holds


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


def test_recorded_weights_count_as_they_are() -> None:
    with record() as trace:
        record_weights(torch.zeros(1, 2, 3, 4, dtype=torch.float16))
    assert trace.nbytes == 2 * 2 * 3 * 4
    assert Trace().nbytes == 0


def test_nothing_recorded_keeps_a_graph_alive() -> None:
    queries, keys, values = (t.requires_grad_() for t in tensors())
    bias = random_bias(1, H, Q, K).requires_grad_()
    with record() as trace:
        attend(queries, keys, values, bias=bias)
        record_weights(torch.softmax(bias, dim=-1))
    assert not any(t.requires_grad for call in trace for t in call.source.tensors())
    assert not any(call.weights().requires_grad for call in trace)


# Sites


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
    layer = DotProductAttention(site="encoder.3.self")
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


def test_a_missing_site_names_those_there_are() -> None:
    with record() as trace:
        record_weights(torch.ones(1, 1, 1, 1), site="a.0.self")
        record_weights(torch.ones(1, 1, 1, 1), site="b.0.self")
    with pytest.raises(KeyError, match=r"no site 'c' in this trace; it has a\.0\.self, b\.0\.self"):
        trace["c"]
    with pytest.raises(KeyError, match="it has none"):
        Trace()["c"]


# Who records


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


def test_a_thread_started_inside_a_block_is_not_recorded() -> None:
    queries, keys, values = tensors()
    with record() as trace:
        thread = threading.Thread(target=attend, args=(queries, keys, values))
        thread.start()
        thread.join()
    assert trace.sites == ()


def test_tasks_of_one_thread_do_not_see_each_other() -> None:
    queries, keys, values = tensors()

    async def visitor(name: str) -> tuple[str, ...]:
        with record() as trace:
            for step in range(3):
                attend(queries, keys, values, site=f"{name}.{step}")
                await asyncio.sleep(0)
        return trace.sites

    async def together() -> list[tuple[str, ...]]:
        return await asyncio.gather(*(visitor(name) for name in "abc"))

    with ThreadPoolExecutor(1) as thread:  # the browser tests may keep an event loop in this one
        seen = thread.submit(lambda: asyncio.run(together())).result()
    assert seen == [tuple(f"{name}.{step}" for step in range(3)) for name in "abc"]


def test_eight_threads_on_one_model_equal_serial_calls() -> None:
    model = translator()
    draw = torch.Generator().manual_seed(6)
    inputs = [
        (
            torch.randint(0, 23, (1, 3 + i % 5), generator=draw),
            torch.randint(0, 23, (1, 2 + i % 4), generator=draw),
            torch.tensor([2 + i % 3]),
        )
        for i in range(40)
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
            parallel = list(threads.map(answer, range(8 * len(inputs))))
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


# Weights from elsewhere


def test_direct_weights_are_behind_the_same_face() -> None:
    weights = torch.softmax(torch.randn(2, 3, 8, 9), dim=-1).half()
    with record() as trace:
        record_weights(weights, site="decoder.0.cross")
    call = trace["decoder.0.cross"]
    assert (call.num_heads, call.num_queries, call.num_keys) == (3, 8, 9)
    assert call.weights().dtype == torch.float32
    assert torch.equal(call.weights(), weights.float())
    assert torch.equal(
        call.weights(head=-1, queries=slice(2, 5), keys=slice(1, 9, 3)), weights[:, 2, 2:5, 1::3].float()
    )
    assert torch.equal(call.overview(4), F.adaptive_max_pool2d(weights.float(), 4))
    with pytest.raises(IndexError, match="head: expected 0 to 2, got 3"):
        call.weights(head=3)


@pytest.mark.parametrize("direct", [False, True])
def test_what_a_reader_does_to_a_map_stays_with_the_reader(direct: bool) -> None:
    with record() as trace:
        if direct:
            record_weights(torch.full((1, 2, 3, 4), 0.25))
        else:
            attend(torch.zeros(1, 2, 3, 5), torch.zeros(1, 2, 4, 5), torch.zeros(1, 2, 4, 5))
    (call,) = trace
    expected = torch.full((1, 2, 3, 4), 0.25)
    for read in (call.weights, call.overview, lambda: call.weights(head=0), lambda: call.weights(keys=slice(0, 2))):
        read().zero_()
        assert torch.equal(call.weights(), expected)


# What attend refuses


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("queries", "keys", "values", "options", "message"),
    [
        ((2, 3, 4), (2, 1, 3, 4), (2, 1, 3, 4), {}, r"expected .*\(batch, heads, n, width\), got \[\(2, 3, 4\)"),
        ((2, 1, 3, 4), (2, 1, 3, 5), (2, 1, 3, 4), {}, "queries and keys of one width, got 4 and 5"),
        ((2, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4), {}, "queries and keys of one batch size, got 2 and 1"),
        ((2, 1, 3, 4), (2, 1, 3, 4), (2, 1, 2, 4), {}, r"one value for each key, got shapes \(2, 1, 3, 4\) and"),
        ((2, 4, 3, 4), (2, 3, 3, 4), (2, 3, 3, 4), {}, "key heads to divide query heads, got 3 and 4"),
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


# Hugging Face's BERT, computed by its own code


@pytest.fixture(scope="module")
def bert() -> Any:
    from transformers import BertConfig, BertModel

    with torch.random.fork_rng():
        torch.manual_seed(8)
        config = BertConfig(
            vocab_size=50,
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=32,
            max_position_embeddings=32,
            initializer_range=0.5,
        )
        return BertModel._from_config(config, attn_implementation="eager").eval()


@torch.no_grad()
def test_weights_equal_those_of_a_bert_with_the_same_parameters(bert: Any) -> None:
    ids = torch.randint(0, 50, (3, 11))
    lengths = torch.tensor([11, 7, 2])
    padding = (torch.arange(11) < lengths[:, None]).long()
    answer = bert(ids, attention_mask=padding, output_attentions=True, output_hidden_states=True)
    for i, layer in enumerate(bert.encoder.layer):
        ours = MultiHeadAttention(24, 4, bias=True, site=f"encoder.{i}.self").eval()
        theirs = layer.attention
        pairs = [(ours.W_q, theirs.self.query), (ours.W_k, theirs.self.key), (ours.W_v, theirs.self.value)]
        for mine, other in [*pairs, (ours.W_o, theirs.output.dense)]:
            mine.load_state_dict(other.state_dict())
        X = answer.hidden_states[i]
        with record() as trace:
            output = ours(X, X, X, lengths)
        call = trace[f"encoder.{i}.self"]
        expected = answer.attentions[i]
        assert expected.amax(-1).mean() > 0.3  # the maps are not flat, so agreeing says something
        torch.testing.assert_close(call.weights(), expected, atol=1e-6, rtol=0)
        torch.testing.assert_close(call.overview(4), F.adaptive_max_pool2d(expected, 4), atol=1e-6, rtol=0)
        attended = theirs.output.LayerNorm(output + X)
        real = padding.bool()
        rest = layer.output(layer.intermediate(attended), attended)
        torch.testing.assert_close(rest[real], answer.hidden_states[i + 1][real], atol=1e-5, rtol=0)
