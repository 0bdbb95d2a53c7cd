"""What is refused, and why a recording is empty."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.viz_core.hub.families import in_memory, inputs_of
from tests.viz_core.trace.attention_cases import D, H, K, Q, V, tensors
from viz_core.attention import AdditiveAttention, MultiHeadAttention
from viz_core.hub import instrument
from viz_core.models import TransformerEncoder
from viz_core.trace import (
    Edit,
    attend,
    intervene,
    knock_out,
    mean,
    name_site,
    off,
    patch,
    patch_state,
    pattern,
    record,
    sharpen,
    window,
)

X = torch.randn(3, 1, 2, 4, 5)
ADDITIVE = AdditiveAttention(5, 5, 5)
MASKS = torch.ones(3, 1, 1, 4, 4, dtype=torch.bool)
TRANSFORMS: dict[str, Callable[[], Any]] = {
    "vmap": lambda: torch.func.vmap(lambda x: attend(x, x, x))(X),
    "vmap with a soft cap": lambda: torch.func.vmap(lambda x: attend(x, x, x, softcap=0.5))(X),
    "vmap over masks alone": lambda: torch.func.vmap(lambda mask: attend(X[0], X[0], X[0], mask=mask))(MASKS),
    "vmap over given weights": lambda: torch.func.vmap(lambda x: ADDITIVE(x, x, x))(X[:, 0]),
    "grad": lambda: torch.func.grad(lambda x: attend(x, x, x).sum())(X[0]),
}


@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_refused_within_record_and_work_without(name: str, differentiable: bool) -> None:
    assert TRANSFORMS[name]().isfinite().all()
    with record(differentiable) as trace:
        with pytest.raises(ValueError, match="a layer without a name: torch.func"):
            TRANSFORMS[name]()
        assert trace.sites == ()
        attend(X[0], X[0], X[0])
    assert trace.sites == ("attention.0",)


def test_vmap_without_a_recorder_gives_each_example() -> None:
    found = torch.func.vmap(lambda x: attend(x, x, x, softcap=0.5))(X)
    torch.testing.assert_close(found, torch.stack([attend(x, x, x, softcap=0.5) for x in X]))


def layer_of(name: str) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    if name == "plain PyTorch":
        plain = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1)
        return plain, plain
    layer = MultiHeadAttention(8, 2)
    name_site(layer, "encoder.0.self")
    return layer, lambda x: layer(x, x, x)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("name", ["ours", "plain PyTorch"])
def test_the_second_run_of_a_checkpointed_layer_is_refused(name: str, use_reentrant: bool) -> None:
    model, run = layer_of(name)
    inputs = torch.randn(2, 5, 8, requires_grad=True)
    torch_calls = model if name == "plain PyTorch" else False
    (expected,) = torch.autograd.grad(run(inputs).sin().sum(), [inputs])
    with record(torch_calls=torch_calls) as trace:
        loss = checkpoint(run, inputs, use_reentrant=use_reentrant).sin().sum()
    assert trace.sites == ("encoder.0.self",)
    loss.backward()  # outside the block: the gradients of what was run
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad, expected)
    if torch_calls:  # torch runs a layer again without this thread's modes
        with record(torch_calls=torch_calls) as trace:
            checkpoint(run, inputs, use_reentrant=use_reentrant).sum().backward()
        assert trace.sites == ("encoder.0.self",)
        return
    with record(), pytest.raises(ValueError, match=r"encoder\.0\.self.*second run"):
        checkpoint(run, inputs, use_reentrant=use_reentrant).sum().backward()


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("name", ["ours", "plain PyTorch"])
def test_edits_of_a_checkpointed_layer_are_refused(name: str, use_reentrant: bool) -> None:
    model, run = layer_of(name)
    inputs = torch.randn(2, 5, 8, requires_grad=True)
    torch_calls = model if name == "plain PyTorch" else False
    edits = {"encoder.0.self": off(1)}
    with pytest.raises(ValueError, match=r"encoder\.0\.self.*checkpointing"), intervene(edits, torch_calls):
        checkpoint(run, inputs, use_reentrant=use_reentrant)
    loss = checkpoint(run, inputs, use_reentrant=use_reentrant).sum()
    (expected,) = torch.autograd.grad(run(inputs).sum(), [inputs])
    message = "there was none" if torch_calls else r"encoder\.0\.self.*second run"
    with pytest.raises(ValueError, match=message), intervene(edits, torch_calls):
        loss.backward()
    if torch_calls:  # torch runs a layer again without this thread's modes
        assert inputs.grad is not None
        torch.testing.assert_close(inputs.grad, expected)


def test_states_of_a_checkpointed_layer_are_refused() -> None:
    model = TransformerEncoder(19, 12, 20, 3, 1, 0.0).train()
    ids = torch.randint(0, 19, (2, 6))

    def run() -> Tensor:
        out: Tensor = checkpoint(lambda: model(ids, None), use_reentrant=False)
        return out

    edits = {"encoder.0.residual": patch_state(torch.zeros(2, 6, 12))}
    with pytest.raises(ValueError, match=r"encoder\.0\.residual.*checkpointing"), intervene(edits):
        run()
    loss = run().sum()
    with record(states=True), pytest.raises(ValueError, match=r"encoder\.0'.*second run"):
        loss.backward()


def test_edits_that_fit_no_layer(shapes_unchecked: None) -> None:
    queries, keys, values = tensors()
    unmet = re.escape("no attention or state at here in this block; there was attention.0")
    with pytest.raises(ValueError, match=unmet), intervene({"here": off(0)}):
        attend(queries, keys, values)
    with pytest.raises(ValueError, match="expected heads 0 to 3, got"), intervene({"attention.0": off(4)}):
        attend(queries, keys, values)
    with pytest.raises(RuntimeError, match="of its own"), intervene({"here": off(0)}):
        raise RuntimeError("of its own, and not hidden by what was never met")
    with pytest.raises(ValueError, match=r"expected edits such as off\(3\), got int"), intervene({"here": 3}):  # type: ignore[dict-item]
        pass
    layer = AdditiveAttention(D, D, 4)
    with pytest.raises(ValueError, match="scaled dot-product attention"), intervene({"attention.0": off(0)}):
        layer(torch.randn(1, Q, D), torch.randn(1, K, D), torch.randn(1, K, V))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: off(), "heads"),
        (lambda: off(-1), "heads"),
        (lambda: off(True), "heads"),
        (lambda: sharpen(0, 0.0), "temperature"),
        (lambda: sharpen(0, float("nan")), "temperature"),
        (lambda: pattern(0, "next"), "expected one of diagonal, previous, first"),
        (lambda: pattern(0, torch.ones(2, 2)), "rows that sum to 1"),
        (lambda: pattern(0, torch.tensor([[2.0, -1.0]])), "rows that sum to 1"),
        (lambda: knock_out(0, query=-1), "query"),
        (lambda: knock_out(0, key=slice(-2, None)), "key"),
        (lambda: knock_out(0, key=slice(None, None, -1)), "key"),
        (lambda: window(0, 0), "size: expected at least 1, got 0"),
        (lambda: window(0, 2, first=-1), "first: expected at least 0, got -1"),
        (lambda: window(0, 2.5), "size: expected a whole number, got float 2.5"),  # type: ignore[arg-type]
        (lambda: mean(4, torch.zeros(4, 2)), "a row for each"),
        (lambda: patch(H, recorded_call()), "as 'attention.0' has"),
        (lambda: patch(0, recorded_call(), "values"), "'weights' or 'output'"),
        (lambda: patch(0, recorded_call(), "output"), "values=True"),
    ],
)
def test_edits_that_make_no_sense(make: Callable[[], Edit], why: str, shapes_unchecked: None) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        make()


def recorded_call() -> Any:
    with record() as trace:
        attend(*tensors())
    return trace["attention.0"]


class Head(nn.Module):
    """Attention whose class does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = self.qkv(x).chunk(3, dim=-1)
        return (queries @ keys.mT).softmax(-1) @ values  # type: ignore[no-any-return]


class Attention(Head):
    """Attention that is in no numbered list."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).softmax(-1)


class Block(nn.Module):
    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.inner = head

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("head", [Head, Attention])
def test_plain_layers_that_are_not_known(head: type[nn.Module]) -> None:
    model = nn.Sequential(Block(head())) if head is Head else Block(head())
    with (
        pytest.warns(UserWarning, match=rf"nothing was.*inner \({head.__name__}\)"),
        record(torch_calls=model),
    ):
        model(torch.randn(1, 4, 8))


@pytest.mark.parametrize("set_it", ["set_attn_implementation", "_attn_implementation"])
def test_attention_that_was_set_after_instrument(set_it: str) -> None:
    model: Any = in_memory("llama")
    instrument(model)
    if set_it == "set_attn_implementation":
        model.set_attn_implementation("sdpa")
    else:
        model.config._attn_implementation = "sdpa"
    with pytest.warns(UserWarning, match=r"set to sdpa after instrument\(model\)"), record():
        model(**inputs_of(model))
    instrument(model)
    with warnings.catch_warnings(), record() as trace:
        warnings.simplefilter("error")
        model(**inputs_of(model))
    assert len(trace) == 2


def test_a_model_that_was_never_instrumented() -> None:
    model = in_memory("llama")
    with pytest.warns(UserWarning, match="was not called for .*LlamaForCausalLM"), record():
        model(**inputs_of(model))
