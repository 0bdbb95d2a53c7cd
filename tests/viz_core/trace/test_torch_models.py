"""Whole models of plain PyTorch, in training and in evaluation with their fast path: seen, named, and left alone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode
from torch.utils.checkpoint import checkpoint

from viz_core.attention import MultiHeadAttention
from viz_core.trace import Trace, attend, record, unrecorded

D, HEADS = 16, 4


def encoder(norm_first: bool = False, batch_first: bool = True, dropout: float = 0.0) -> nn.TransformerEncoder:
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(D, HEADS, 24, dropout, batch_first=batch_first, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=batch_first and not norm_first)
    for weights in model.parameters():  # the layers are copies of one, and even attention would prove nothing
        nn.init.normal_(weights, std=0.6)
    return model


def padded(lengths: tuple[int, ...], longest: int) -> Tensor:
    """True where a token is padding."""
    return torch.arange(longest) >= torch.tensor(lengths)[:, None]


def maps_layer_by_layer(model: nn.TransformerEncoder, X: Tensor, mask: Tensor | None, padding: Tensor | None) -> list:
    """torch's own weights of each layer, by its ordinary path."""
    maps = []
    for layer in model.layers:
        attended = layer.norm1(X) if layer.norm_first else X
        asked = {"attn_mask": mask, "key_padding_mask": padding, "average_attn_weights": False}
        maps.append(layer.self_attn(attended, attended, attended, **asked)[1])
        X = layer(X, src_mask=mask, src_key_padding_mask=padding)
    return maps


def kernels_called(run: Callable[[], Any]) -> list[str]:
    """The names of torch's functions that are called in a run, attention kernels among them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
    return [event.name for event in profile.events() if "transformer_encoder_layer" in event.name]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("with_mask", [None, "causal", "padding", "both"])
@pytest.mark.parametrize("mode", ["evaluation", "gradients", "training"])
def test_an_encoder(mode: str, with_mask: str | None, norm_first: bool) -> None:
    model = encoder(norm_first).train(mode == "training")
    X = torch.randn(3, 6, D)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(diagonal=1) if with_mask in ("causal", "both") else None
    padding = padded((6, 4, 2), 6) if with_mask in ("padding", "both") else None

    def run() -> Tensor:
        return model(X, mask=mask, src_key_padding_mask=padding)

    with torch.no_grad() if mode == "evaluation" else contextlib.nullcontext():
        plain, fast = run(), kernels_called(run)
        with record(torch_calls=model) as trace:
            output = run()
            fast_when_recorded = kernels_called(run)
        expected = maps_layer_by_layer(model, X, mask, padding)
    assert torch.equal(output, plain)
    assert fast_when_recorded == fast
    assert bool(fast) is (mode == "evaluation")
    assert trace.sites[:3] == ("encoder.0.self", "encoder.1.self", "encoder.2.self")
    real = torch.ones(3, 6, dtype=torch.bool) if padding is None else ~padding
    for site, weights in zip(trace.sites, expected, strict=False):
        assert weights.std() > 0.02
        difference = (trace[site].weights() - weights.detach()).abs().amax(dim=(1, 3))
        assert float(difference[real].max()) < 1e-6, site


def test_what_is_filled_up_in_a_nested_batch_takes_no_part() -> None:
    model, padding = encoder().eval(), padded((4, 2), 6)
    X = torch.randn(2, 6, D)
    with torch.no_grad():
        plain = model(X, src_key_padding_mask=padding)
        with record(torch_calls=True) as trace:
            output = model(X, src_key_padding_mask=padding)
    assert torch.equal(output, plain)
    assert not output[padding].any(), "the fast path answers padding with zeros"
    weights = trace["attention.2"].weights()
    assert weights.shape == (2, HEADS, 4, 4), "as long as its longest member"
    assert not weights[1, :, 2:].any()
    assert not weights[1, :, :, 2:].any()
    torch.testing.assert_close(weights[1, :, :2].sum(dim=-1), torch.ones(HEADS, 2))


def test_a_nested_batch_of_ones_own() -> None:
    model = encoder().eval()
    nested = torch.nested.nested_tensor([torch.randn(n, D) for n in (2, 5)])
    with torch.no_grad():
        plain = model(nested)
        with record(torch_calls=True) as trace:
            output = model(nested)
    assert all(torch.equal(a, b) for a, b in zip(plain.unbind(), output.unbind(), strict=True))
    assert [call.source.shape for call in trace] == 3 * [(2, HEADS, 5, 5)]


def test_the_fast_path_takes_any_number_of_a_mask_for_hidden() -> None:
    """So torch does, whatever its documentation says of numbers; the map is of what was computed."""
    model = encoder().eval()
    X, mask = torch.randn(1, 4, D), torch.zeros(4, 4)
    mask[:, 3] = 0.5
    with torch.no_grad(), record(torch_calls=True) as trace:
        output = model(X, mask=mask)
        hidden = model(X, mask=mask.bool())
    assert torch.equal(output, hidden)
    assert not trace["attention.0"].weights()[..., 3].any()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_encoder_and_decoder(training: bool, batch_first: bool) -> None:
    torch.manual_seed(3)
    model = nn.Transformer(D, HEADS, 2, 2, 24, dropout=0.0, batch_first=batch_first).train(training)
    source, target = torch.randn(2, 5, D), torch.randn(2, 4, D)
    if not batch_first:
        source, target = source.transpose(0, 1), target.transpose(0, 1)
    future = nn.Transformer.generate_square_subsequent_mask(4)

    def run() -> Tensor:
        return model(source, target, tgt_mask=future, tgt_is_causal=True)

    with torch.set_grad_enabled(training):
        plain = run()
        with record(torch_calls=model) as trace:
            output = run()
    assert torch.equal(output, plain)
    assert trace.sites == (
        "encoder.0.self",
        "encoder.1.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    )
    assert not trace["decoder.1.self"].weights().triu(diagonal=1).any()
    layer, memory = model.decoder.layers[0], model.encoder(source)
    seen = layer.norm1(target + layer.self_attn(target, target, target, attn_mask=future)[0])
    for site, attention, inputs, mask in (
        ("decoder.0.self", layer.self_attn, (target, target, target), future),
        ("decoder.0.cross", layer.multihead_attn, (seen, memory, memory), None),
    ):
        expected = attention(*inputs, attn_mask=mask, average_attn_weights=False)[1]
        torch.testing.assert_close(trace[site].weights(), expected.detach(), atol=1e-6, rtol=0)


def test_a_decoder_by_itself() -> None:
    model = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, HEADS, 24, batch_first=True), 2).eval()
    with record(torch_calls=model) as trace:
        model(torch.randn(1, 3, D), torch.randn(1, 5, D))
    assert trace.sites == ("decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross")
    assert trace["decoder.1.cross"].num_keys == 5


def test_training_goes_on_as_it_would() -> None:
    """Losses, gradients and weights after steps with dropout: bit for bit what they are without a recorder."""

    def train(recorded: bool) -> list[Tensor]:
        model = encoder(dropout=0.3).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        torch.manual_seed(4)
        for _ in range(3):
            with record(torch_calls=model) if recorded else contextlib.nullcontext(Trace()) as trace:
                loss = model(torch.randn(2, 5, D)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            assert trace.sites == (("encoder.0.self", "encoder.1.self", "encoder.2.self") if recorded else ())
            assert not any(t.requires_grad for call in trace for t in call.source.tensors())
        return [*model.parameters(), *(weights.grad for weights in model.parameters())]

    assert all(torch.equal(a, b) for a, b in zip(train(True), train(False), strict=True))


def test_layers_recomputed_for_their_gradients_are_recorded_once() -> None:
    model = encoder().train()
    X = torch.randn(2, 5, D, requires_grad=True)
    (expected,) = torch.autograd.grad(model(X).square().sum(), [X])
    with record(torch_calls=model) as trace:
        output = X
        for layer in model.layers:
            output = checkpoint(layer, output, use_reentrant=False)
        (found,) = torch.autograd.grad(output.square().sum(), [X])
    assert torch.equal(found, expected)
    assert trace.sites == ("encoder.0.self", "encoder.1.self", "encoder.2.self")


class Block(nn.Module):
    """Attention as most vision models write it: one projection, torch's kernel, one more projection."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

        def forward(self, X: Tensor) -> Tensor:
            queries, keys, values = self.qkv(X).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            return self.proj(F.scaled_dot_product_attention(queries, keys, values).transpose(1, 2).flatten(-2))

    def __init__(self) -> None:
        super().__init__()
        self.attn, self.mlp = Block.Attention(), nn.Linear(D, D)

    def forward(self, X: Tensor) -> Tensor:
        return X + self.mlp(X + self.attn(X))


def test_a_layer_is_known_by_the_weights_used_before() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(2))

        def forward(self, X: Tensor) -> Tensor:
            X = self.blocks[1](self.blocks[0](X))
            return F.scaled_dot_product_attention(*3 * [X[:, None]])  # of no layer

    model, X = Model(), torch.randn(1, 4, D)
    before = dict(vars(model.blocks[0].attn))
    with record(torch_calls=model) as trace:
        model(X)
    assert trace.sites == ("encoder.0.self", "encoder.1.self", "attention.0")
    assert vars(model.blocks[0].attn) == before, "nothing is written on a layer"
    with record(torch_calls=True) as unnamed:
        model(X)
    assert unnamed.sites == ("attention.0", "attention.1", "attention.2")


def test_our_own_layers_are_recorded_once() -> None:
    layer = MultiHeadAttention(D, HEADS).eval()
    X = torch.randn(1, 3, D)
    queries = torch.randn(1, 2, 3, 4)
    with record(torch_calls=True) as trace:
        layer(X, X, X)
        attend(queries, queries, queries, site="ours")
        F.scaled_dot_product_attention(queries, queries, queries)
    assert trace.sites == ("attention.0", "ours", "attention.1")


# Whose calls are heard


def call(axis: int = 2) -> Tensor:
    X = torch.ones(1, 1, axis, 4)
    return F.scaled_dot_product_attention(X, X, X)


def assert_nothing_is_left() -> None:
    assert _get_current_function_mode() is None
    assert torch.overrides.has_torch_function is torch._C._has_torch_function


def test_plain_recording_hears_only_our_door() -> None:
    with record() as trace:
        call()
        assert_nothing_is_left()
    assert trace.sites == ()


def test_blocks_within_blocks() -> None:
    with record(torch_calls=True) as outer:
        call()
        with record(torch_calls=True) as inner:
            call()
            with record() as deaf:
                call()
        with unrecorded():
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
            start.wait()
            same = all(torch.equal(model(inputs[number]), expected[number]) for _ in range(30))
            assert (_get_current_function_mode() is None) is (number != 0)
        return same, len(trace)

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(run, range(8)))
    assert results == [(True, 90), *7 * [(True, 0)]]
    assert_nothing_is_left()


def test_a_thread_may_adopt_the_trace() -> None:
    with record(torch_calls=True) as trace:

        def work() -> None:
            call()
            with trace.adopt():
                call(3)
            call()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [each.num_keys for each in trace] == [3]
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


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_refuses_what_is_no_model(wrong: Any) -> None:
    with (
        pytest.raises(ValueError, match="torch_calls: expected True, False or a model, got"),
        record(torch_calls=wrong),
    ):
        pass
    assert_nothing_is_left()


def test_refuses_gradients_by_weights_that_torch_does_not_keep() -> None:
    expected = pytest.raises(ValueError, match="torch_calls: expected False with differentiable")
    with expected, record(differentiable=True, torch_calls=True):
        pass
    assert_nothing_is_left()
