"""Recording and editing plain PyTorch: for one block, thread or task, beside other libraries' modes."""

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
from torch.overrides import TorchFunctionMode, _get_current_function_mode

from tests.viz_core.trace.test_torch_models import HEADS, D, encoder, padded
from viz_core.models import TransformerEncoder
from viz_core.trace import (
    Trace,
    attention_weights,
    gate,
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


def test_blocks_within_blocks() -> None:
    with record(torch_calls=True) as outer:
        call()
        with record(torch_calls=True) as inner:
            call()
            with record() as deaf:
                call()
        with no_recording():
            call()
        with outer.adopt():
            call()
    assert (len(outer), len(inner), len(deaf)) == (2, 1, 0)
    call()
    assert len(outer) == 2
    assert_nothing_is_left()


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


def test_modes_of_others_go_on() -> None:
    """A mode around or within ours sees every call once, and closes torch's fast path as it always does."""

    class Counting(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Any] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(func)
            return func(*args, **(kwargs or {}))

    model, X = encoder().eval(), torch.randn(1, 3, D)
    with torch.no_grad():
        for around in (True, False):
            with Counting() as others:
                alone = model(X)
            calls = others.seen.copy()
            others.seen.clear()
            first, second = (others, record(torch_calls=True)) if around else (record(torch_calls=True), others)
            with first, second:
                together = model(X)
            assert torch.equal(alone, together)
            assert others.seen == calls
            assert torch._transformer_encoder_layer_fwd not in calls


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
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"kdim": 12, "vdim": 20, "batch_first": True},
    ],
)
def test_a_layer(options: dict[str, Any], needs: str | None) -> None:
    layer = nn.MultiheadAttention(D, HEADS, **options)
    queries, keys = torch.randn(2, 5, D), torch.randn(2, 6, options.get("kdim", D))
    values = torch.randn(2, 6, options.get("vdim", D))
    inputs = (
        (queries, keys, values) if options.get("batch_first") else [x.transpose(0, 1) for x in (queries, keys, values)]
    )
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


@pytest.mark.parametrize("first", ["recorder", "intervention"])
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_a_model_by_the_names_of_its_layers(training: bool, first: str) -> None:
    model = encoder().train(training)
    X, padding = torch.randn(2, 5, D), padded((5, 3), 5)
    with ExitStack() as stack:
        for who in (first, "recorder" if first == "intervention" else "intervention"):
            if who == "recorder":
                trace: Trace = stack.enter_context(record(torch_calls=model))
            else:
                edits = {"encoder.1.self": [off(1), uniform(3)], "encoder.2.self": pattern(0, "previous")}
                stack.enter_context(intervene(edits, torch_calls=model))
        found = model(X, src_key_padding_mask=padding)
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


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda: nn.MultiheadAttention(D, HEADS, dropout=0.1)(*torch.randn(3, 5, 1, D)), "expected no dropout"),
        (lambda: F.scaled_dot_product_attention(*torch.randn(3, 1, 1, 5, D)), "expected heads 0 to 0"),
    ],
)
def test_what_is_refused(run: Callable[[], Any], why: str, shapes_unchecked: None) -> None:
    with pytest.raises(ValueError, match=why), intervene({"attention.0": off(1)}, torch_calls=True):
        run()
    with pytest.raises(ValueError, match="torch_calls: expected True"), intervene({}, torch_calls="all"):  # type: ignore[arg-type]
        pass


class OwnAttention(nn.Module):
    """Attention by matrix products, over the windows of each picture."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.W = HEADS, nn.Linear(D, 3 * D)

    def forward(self, X: Tensor) -> Tensor:
        queries, keys, values = (x.unflatten(-1, (HEADS, WIDTH)).transpose(-2, -3) for x in self.W(X).chunk(3, dim=-1))
        weights = torch.softmax(queries @ keys.mT, dim=-1)
        return (weights @ values).transpose(-2, -3).flatten(-2)


def test_attention_by_matrix_products_is_recorded_in_windows_and_its_edits_are_refused() -> None:
    model, X = nn.Sequential(OwnAttention(), OwnAttention()), torch.randn(2, 3, 5, D)
    with record(torch_calls=model) as trace:
        model(X)
    assert [call.source.shape for call in trace] == [(6, HEADS, 5, 5)] * 2
    message = "encoder.0.self: expected calls of torch's attention functions"
    with pytest.raises(ValueError, match=message), intervene({"encoder.0.self": off(0)}, torch_calls=model):
        model(X)
