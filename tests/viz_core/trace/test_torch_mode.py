"""Recording and editing plain PyTorch: for one block, thread or task, with values, and with weights in the graph."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.overrides import _get_current_function_mode

from tests.viz_core.trace.test_torch_models import HEADS, D, KernelAttention, Products, encoder, padded
from viz_core.hub import coverage
from viz_core.maps.contributions import contribution_sum
from viz_core.models import TransformerEncoder
from viz_core.trace import (
    Trace,
    attention_weights,
    gate,
    head_outputs,
    intervene,
    no_recording,
    off,
    pattern,
    record,
    sharpen,
    uniform,
)


def call(axis: int = 2) -> Tensor:
    X = torch.ones(1, 1, axis, 4)
    return F.scaled_dot_product_attention(X, X, X)


def assert_nothing_is_left() -> None:
    assert _get_current_function_mode() is None
    assert torch.overrides.has_torch_function is torch._C._has_torch_function


def test_an_error_leaves_nothing_behind() -> None:
    with contextlib.suppress(ZeroDivisionError), record(torch_calls=True) as trace:
        call()
        with pytest.raises(RuntimeError):
            F.scaled_dot_product_attention(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 3))
        call()
        raise ZeroDivisionError
    assert trace.sites == ("attention.0", "attention.1")
    assert_nothing_is_left()


def test_other_threads_neither_hear_nor_are_heard() -> None:
    """One thread records; seven run the same model, on its fast path, and get what they always get."""
    model = encoder().eval()
    inputs = [torch.randn(1, 3 + i, D) for i in range(8)]
    with torch.no_grad():
        expected = [model(X) for X in inputs]
    start = threading.Barrier(8)

    def run(number: int) -> tuple[bool, int]:
        with torch.no_grad(), record(torch_calls=number == 0) as trace:
            with no_recording():
                model(inputs[number])  # torch rounds the first call of a new thread otherwise: it has more threads
            start.wait()
            same = all(torch.equal(model(inputs[number]), expected[number]) for _ in range(30))
            assert (_get_current_function_mode() is None) is (number != 0)
        return same, len(trace)

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(run, range(8)))
    assert results == [(True, 90), *7 * [(True, 0)]]
    assert_nothing_is_left()


def test_tasks_of_one_thread_do_not_hear_each_other() -> None:
    async def visitor(number: int) -> list[int]:
        with record(torch_calls=number < 3) as trace:
            for _ in range(number):
                call(number)
                await asyncio.sleep(0)
        return [each.num_keys for each in trace]

    async def together() -> list[list[int]]:
        return await asyncio.gather(*(visitor(number) for number in (1, 2, 3)))

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: asyncio.run(together())).result() == [[1], [2, 2], []]
    assert_nothing_is_left()


WIDTH = D // HEADS


@torch.no_grad()
def without_columns(projection: nn.Linear, head: int) -> None:
    projection.weight[:, head * WIDTH : (head + 1) * WIDTH] = 0


@pytest.mark.parametrize("shape", [(HEADS,), (3, HEADS), (2, 3, HEADS)])
@pytest.mark.parametrize("key_heads", [HEADS, 2])
def test_the_kernel_itself(shape: tuple[int, ...], key_heads: int) -> None:
    q = torch.randn(*shape, 5, 8)
    k, v = torch.randn(2, *shape[:-1], key_heads, 6, 8)

    def run() -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=key_heads < HEADS)

    plain = run()
    with intervene({"attention.1": [sharpen(1, 0.5), off(3)]}, torch_calls=True):
        assert torch.equal(run(), plain), "the first call is nobody's"
        found = run()
    assert torch.equal(found[..., [0, 2], :, :], plain[..., [0, 2], :, :])
    assert not found[..., 3, :, :].any()
    group = 1 * key_heads // HEADS
    weights = attention_weights(*(x.reshape(-1, 1, *x.shape[-2:]) for x in (q[..., 1, :, :], k[..., group, :, :])))
    expected = F.normalize(weights**2, p=1, dim=-1)[:, 0] @ v[..., group, :, :].reshape(-1, 6, 8)
    torch.testing.assert_close(found[..., 1, :, :].reshape(-1, 5, 8), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("needs", [None, "mean", "each"])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"add_bias_kv": True}, {"kdim": 12, "vdim": 20}])
def test_a_layer(options: dict[str, Any], needs: str | None) -> None:
    layer = nn.MultiheadAttention(D, HEADS, **options)
    queries, keys = torch.randn(5, 2, D), torch.randn(6, 2, options.get("kdim", D))
    inputs = queries, keys, torch.randn(6, 2, options.get("vdim", D))
    calls_kernel = {"need_weights": needs is not None, "average_attn_weights": needs == "mean"}
    with intervene({"attention.0": off(2)}, torch_calls=True), record(torch_calls=True) as trace:
        found, weights = layer(*inputs, **calls_kernel)
    recorded = trace["attention.0"].weights()
    assert not recorded[:, 2].any()
    assert (recorded[:, [0, 1, 3]].sum(dim=-1) - 1).abs().max() < 1e-6
    if needs is not None:
        torch.testing.assert_close(weights, recorded.mean(dim=1) if needs == "mean" else recorded, atol=1e-6, rtol=0)
    without_columns(layer.out_proj, 2)
    torch.testing.assert_close(found, layer(*inputs, **calls_kernel)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("recorder_first", [True, False])
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_a_model_by_the_names_of_its_layers(training: bool, recorder_first: bool) -> None:
    model = encoder().train(training)
    X, padding = torch.randn(2, 5, D), padded((5, 3), 5)
    edits = {"encoder.1.self": [off(1), uniform(3)], "encoder.2.self": pattern(0, "previous")}
    blocks = record(torch_calls=model), intervene(edits, torch_calls=model)
    with ExitStack() as stack:
        entered = [stack.enter_context(block) for block in (blocks if recorder_first else blocks[::-1])]
        found = model(X, src_key_padding_mask=padding)
    trace: Trace = entered[0 if recorder_first else 1]
    assert trace.sites == ("encoder.0.self", "encoder.1.self", "encoder.2.self")
    second = trace["encoder.1.self"].weights()
    assert not second[:, 1].any()
    torch.testing.assert_close(second[1, 3, 0], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0, 0]))
    assert trace["encoder.2.self"].weights(head=0)[0].argmax(dim=-1).tolist() == [0, 0, 1, 2, 3]
    with intervene({"encoder.1.self": uniform(3), "encoder.2.self": pattern(0, "previous")}, torch_calls=model):
        without_columns(model.layers[1].self_attn.out_proj, 1)
        expected = model(X, src_key_padding_mask=padding)
    real = ~padding
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=0)


def test_a_model_of_ours_is_edited_once_however_it_is_heard() -> None:
    model, X = TransformerEncoder(20, 16, 24, 4, 2, 0.0).eval(), torch.randint(0, 20, (2, 5))
    edits = {"encoder.0.self": sharpen(1, 0.5), "encoder.1.self": gate(2, 3.0)}
    with intervene(edits):
        expected = model(X)
    with intervene(edits, torch_calls=model), record(torch_calls=model) as trace:
        assert torch.equal(model(X), expected)
    assert len(trace) == 2


def test_edits_of_dropout_and_of_matrix_products_are_refused() -> None:
    model, X = nn.Sequential(Products().layers[0]), torch.randn(2, 5, D)
    with pytest.raises(ValueError, match="expected no dropout"), intervene({"attention.0": off(1)}, torch_calls=True):
        nn.MultiheadAttention(D, HEADS, dropout=0.1)(*torch.randn(3, 5, 1, D))
    message = "encoder.0.self: expected calls of torch's attention functions"
    with pytest.raises(ValueError, match=message), intervene({"encoder.0.self": off(0)}, torch_calls=model):
        model(X)


class OwnProductsAttention(nn.Module):
    def __init__(self, gated: bool = False) -> None:
        super().__init__()
        self.n_head, self.gated = HEADS, gated
        self.qkv, self.gate, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, X: Tensor) -> Tensor:
        q, k, v = self.qkv(X).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        pooled = (F.softmax(q @ k.mT, dim=-1) @ v).transpose(1, 2).flatten(2)
        return self.proj(pooled * self.gate(X).sigmoid() if self.gated else pooled)


LAYERS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "nn.MultiheadAttention": lambda: (model := encoder().layers[0], model.self_attn.out_proj),
    "kernel": lambda: (model := KernelAttention(), model.proj),
    "products": lambda: (model := OwnProductsAttention(), model.proj),
    "gated products": lambda: (model := OwnProductsAttention(gated=True), model.proj),
}


def output_hook(model: nn.Module, W_o: nn.Linear) -> list[Tensor]:
    outputs: list[Tensor] = []
    getattr(model, "self_attn", W_o).register_forward_hook(
        lambda _layer, _inputs, output: outputs.append(output[0] if isinstance(output, tuple) else output)
    )
    return outputs


@pytest.mark.parametrize("name", LAYERS)
def test_contributions_add_up_to_the_output(name: str) -> None:
    torch.manual_seed(5)
    model, W_o = LAYERS[name]()
    wrapped, outputs = nn.ModuleList([model.eval()]), output_hook(model, W_o)
    with record(values=True, torch_calls=wrapped) as trace:
        model(torch.randn(2, 5, D))
    call, output = trace["encoder.0.self"], outputs[0].detach() - W_o.bias.detach()
    assert (call.source.gate is not None) == ("gated" in name)
    torch.testing.assert_close(contribution_sum(call, W_o), output, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(contribution_sum(call.text(1), W_o)[0], output[1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("recorder_first", [True, False])
@pytest.mark.parametrize("name", ["kernel", "nn.MultiheadAttention"])
@torch.no_grad()
def test_contributions_of_edited_heads(name: str, recorder_first: bool) -> None:
    """An edit that multiplies what a head writes is not taken for a gate of the layer's own as well."""
    model, W_o = LAYERS[name]()
    wrapped, X, outputs = nn.ModuleList([model.train()]), torch.randn(2, 5, D), output_hook(model, W_o)
    recorder = record(values=True, torch_calls=wrapped)
    edited = intervene({"encoder.0.self": [gate(1, 0.5), off(3)]}, torch_calls=wrapped)
    with ExitStack() as stack:
        found = [stack.enter_context(each) for each in ((recorder, edited) if recorder_first else (edited, recorder))]
        model(X)
        model(X)
    for call, output in zip(found[0 if recorder_first else 1], outputs, strict=True):
        assert call.source.gate is None
        assert not call.source.is_changed
        torch.testing.assert_close(contribution_sum(call, W_o), output - W_o.bias, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("mode", ["evaluation", "gradients"])
def test_a_whole_encoder(mode: str) -> None:
    """Also on the fast path, where a batch with padding is nested."""
    model, X, padding = encoder().eval(), torch.randn(2, 5, D), padded((5, 3), 5)
    with torch.set_grad_enabled(mode == "gradients"):
        plain = model(X, src_key_padding_mask=padding)
        with record(values=True, torch_calls=model) as trace:
            assert torch.equal(model(X, src_key_padding_mask=padding), plain)
    layer = model.layers[0].self_attn
    expected = layer(X, X, X, key_padding_mask=padding)[0].detach() - layer.out_proj.bias.detach()
    call = trace["encoder.0.self"]
    found = contribution_sum(call, layer.out_proj)
    real = ~padding
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("unbatched", [False, True])
@pytest.mark.parametrize("needs", [None, "mean", "each"])
def test_weights_in_the_graph_of_a_layer(needs: str | None, unbatched: bool) -> None:
    layer = nn.MultiheadAttention(D, HEADS, batch_first=True)
    X = torch.randn(*(() if unbatched else (2,)), 5, D, requires_grad=True)
    options = {"need_weights": needs is not None, "average_attn_weights": needs == "mean"}
    plain, weights = layer(X, X, X, **options)
    with record(differentiable=True, torch_calls=True) as trace:
        output, returned = layer(X, X, X, **options)
    torch.testing.assert_close(output, plain, atol=1e-6, rtol=1e-5)
    if weights is not None:
        torch.testing.assert_close(returned, weights, atol=1e-6, rtol=1e-5)
    found = trace["attention.0"].graph_weights
    gradient, of_input = torch.autograd.grad(output.square().sum(), [found, X])
    (expected,) = torch.autograd.grad(plain.square().sum(), [X])
    torch.testing.assert_close(of_input, expected, atol=1e-5, rtol=1e-4)
    # By hand: dL/dw_ij is the output's gradient times W_o v_j.
    W_v, b_v = layer.in_proj_weight.chunk(3)[2], layer.in_proj_bias.chunk(3)[2]
    values = F.linear(X, W_v, b_v).unflatten(-1, (HEADS, -1)).reshape(-1, 5, HEADS, D // HEADS).transpose(1, 2)
    upstream = (2 * output @ layer.out_proj.weight).reshape(-1, 5, HEADS, D // HEADS).transpose(1, 2)
    torch.testing.assert_close(gradient, upstream @ values.mT, atol=1e-5, rtol=1e-4)


compiled_flex: Any = None  # set by the test, as the compiler takes seconds to import


class FlexAttention(nn.Module):
    """torch's flex_attention: grouped keys, a bias of each head's own, padding and the future hidden by a function."""

    def __init__(self, compiled: bool) -> None:
        super().__init__()
        self.compiled, self.slopes = compiled, torch.tensor([0.5, 0.25, 0.125, 0.0625])
        self.q_proj, self.kv_proj, self.out_proj = nn.Linear(16, 32), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, X: Tensor, lengths: Tensor) -> Tensor:
        def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return 3 * torch.tanh(score / 3) - self.slopes[h] * (i - j)

        def mask_mod(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return (j <= i) & (j < lengths[b])

        parts = self.q_proj(X), *self.kv_proj(X).chunk(2, dim=-1)
        Q, K, V = (each.unflatten(-1, (-1, 8)).transpose(1, 2) for each in parts)
        mask = create_block_mask(mask_mod, len(X), 1, X.shape[1], X.shape[1], device="cpu")
        if self.compiled:
            pooled = compiled_flex(Q, K, V, score_mod, mask, enable_gqa=True)
        else:
            pooled = flex_attention(Q, K, V, score_mod=score_mod, block_mask=mask, enable_gqa=True, scale=0.5)
        return self.out_proj(pooled.transpose(1, 2).flatten(2))


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-2)])
def test_flex_attention_is_recorded_where_a_model_names_it(
    compiled: bool, dtype: torch.dtype, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "compiled_flex", torch.compile(flex_attention, backend="eager"))
    monkeypatch.setitem(globals(), "flex_attention", flex_attention)  # put back what recording wraps
    model = nn.ModuleDict({"layers": nn.ModuleList([FlexAttention(compiled) for _ in range(2)])}).to(dtype)
    X, lengths, first = torch.randn(2, 5, 16, dtype=dtype), torch.tensor([5, 3]), model["layers"][0]
    plain, projected = first(X, lengths), []
    assert [row.site for row in coverage(model)] == ["encoder.0.self", "encoder.1.self"]
    hook = first.out_proj.register_forward_pre_hook(lambda _layer, inputs: projected.append(inputs[0]))
    with record(torch_calls=model, values=True) as trace:
        assert torch.equal(first(X, lengths), plain)
    hook.remove()
    call = trace["encoder.0.self"]
    expected = projected[0].unflatten(-1, (4, 8)).transpose(1, 2).float()
    torch.testing.assert_close(head_outputs(call), expected, atol=most, rtol=most)
    weights = call.weights()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 4, 5))
    assert not weights.triu(1).any()
    assert not weights[1, :, :, 3:].any()
    edited = intervene({"encoder.0.self": off(0)})
    with pytest.raises(ValueError, match="encoder.0.self"), edited, record(torch_calls=model):
        first(X, lengths)
    assert torch.equal(first(X, lengths), plain), "outside of a recording it does what it did"
