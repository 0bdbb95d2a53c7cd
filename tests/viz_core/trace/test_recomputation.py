"""What runs a layer a second time, or many times at once: activation checkpointing, and torch.func's transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.viz_core.trace.attention_cases import B, H, K, brute_force, random_bias, tensors
from viz_core.attention import AdditiveAttention, DotProductAttention, MultiHeadAttention
from viz_core.models import TransformerEncoderBlock
from viz_core.trace import Trace, attend, gate, intervene, knock_out, name_site, off, record, uniform

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "dot product": DotProductAttention,
    "additive": lambda: AdditiveAttention(8, 8, 8),
    "multi-head": lambda: MultiHeadAttention(8, 2),
    "soft cap": lambda: MultiHeadAttention(8, 2, softcap=1.0),
}


def run(layer: nn.Module, X: Tensor, **how: Any) -> Tensor:
    return checkpoint(layer, X, X, X, **how) if how else layer(X, X, X)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_a_checkpointed_layer_is_recorded_once(name: str, use_reentrant: bool) -> None:
    layer, X = LAYERS[name](), torch.randn(2, 5, 8, requires_grad=True)
    name_site(layer, "encoder.0.self")
    with record() as plain:
        (expected,) = torch.autograd.grad(run(layer, X).sin().sum(), [X])
    with record() as trace:
        run(layer, X, use_reentrant=use_reentrant).sin().sum().backward()  # runs the layer again
        run(layer, X)  # the next step of training is a call of its own
    assert trace.sites == ("encoder.0.self", "encoder.0.self@2")
    assert X.grad is not None
    torch.testing.assert_close(X.grad, expected)
    for call in trace:
        torch.testing.assert_close(call.weights(), plain["encoder.0.self"].weights())


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_recorder_around_the_backward_pass_alone_hears_nothing(use_reentrant: bool) -> None:
    layer, X = MultiHeadAttention(8, 2), torch.randn(2, 5, 8, requires_grad=True)
    loss = run(layer, X, use_reentrant=use_reentrant).sum()
    with record() as trace:
        loss.backward()
    assert trace.sites == ()


def test_a_recorder_within_the_backward_pass_hears_its_own_block() -> None:
    """As in a hook on gradients, which is no second run of anything."""
    layer, X = MultiHeadAttention(8, 2), torch.randn(1, 3, 8, requires_grad=True)
    traces: list[Trace] = []

    def hook(_: Tensor) -> None:
        with record() as trace:
            run(layer, X.detach())
        traces.append(trace)

    X.register_hook(hook)
    run(layer, X, use_reentrant=False).sum().backward()
    assert [trace.sites for trace in traces] == [("attention.0",)]


def test_a_checkpointed_stack() -> None:
    blocks = [TransformerEncoderBlock(8, 12, 2, 0.0) for _ in range(3)]
    for i, block in enumerate(blocks):
        name_site(block.attention, f"encoder.{i}.self")
    H = torch.randn(1, 4, 8, requires_grad=True)
    with record() as trace:
        X = H
        for block in blocks:
            X = checkpoint(block, X, use_reentrant=False)
        X.sum().backward()
    assert trace.sites == ("encoder.0.self", "encoder.1.self", "encoder.2.self")


def test_weights_in_the_graph_of_a_checkpointed_layer() -> None:
    """The second run must go the way of the first, or torch refuses its tensors."""
    layer, X = MultiHeadAttention(8, 2), torch.randn(2, 5, 8, requires_grad=True)
    (expected,) = torch.autograd.grad(run(layer, X).sin().sum(), [X])
    with record(differentiable=True) as trace:
        (found,) = torch.autograd.grad(run(layer, X, use_reentrant=False).sin().sum(), [X])
    torch.testing.assert_close(found, expected)
    assert trace.sites == ("attention.0",)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("name", ["off", "gate", "uniform", "knock out"])
def test_edits_of_a_checkpointed_layer_are_in_its_gradients(name: str, within: bool, use_reentrant: bool) -> None:
    """Wherever the backward pass is called: the second run is edited as the first was."""
    edit = {"off": off(1), "gate": gate(0, 3.0), "uniform": uniform(1), "knock out": knock_out(None, key=0)}[name]
    blocks = [MultiHeadAttention(8, 2) for _ in range(2)]
    for i, block in enumerate(blocks):
        name_site(block, f"encoder.{i}.self")
    X = torch.randn(2, 5, 8, requires_grad=True)

    def loss(**how: Any) -> Tensor:
        return run(blocks[1], run(blocks[0], X, **how), **how).sin().sum()

    with intervene({"encoder.0.self": edit}):
        (expected,) = torch.autograd.grad(loss(), [X])
    (plain,) = torch.autograd.grad(loss(), [X])
    assert float((plain - expected).abs().max()) > 1e-4
    with intervene({"encoder.0.self": edit}):
        edited = loss(use_reentrant=use_reentrant)
        if within:
            edited.backward()
    if not within:
        edited.backward()
    assert X.grad is not None
    torch.testing.assert_close(X.grad, expected)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_edits_around_the_backward_pass_alone_change_nothing(use_reentrant: bool) -> None:
    layer, X = MultiHeadAttention(8, 2), torch.randn(2, 5, 8, requires_grad=True)
    name_site(layer, "encoder.0.self")
    (expected,) = torch.autograd.grad(run(layer, X).sin().sum(), [X])
    loss = run(layer, X, use_reentrant=use_reentrant).sin().sum()
    with pytest.raises(ValueError, match="there was none"), intervene({"encoder.0.self": off(0)}):
        loss.backward()
    assert X.grad is not None
    torch.testing.assert_close(X.grad, expected)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_edits_of_checkpointed_plain_pytorch_are_in_its_gradients(use_reentrant: bool) -> None:
    layers = nn.ModuleList([nn.ModuleDict({"self_attn": nn.MultiheadAttention(8, 2, batch_first=True)})])
    model = nn.ModuleDict({"layers": layers})
    X = torch.randn(2, 5, 8, requires_grad=True)

    def forward(x: Tensor) -> Tensor:
        return layers[0]["self_attn"](x, x, x, need_weights=False)[0]  # type: ignore[index]

    with record(torch_calls=model) as trace:
        forward(X)
    (site,) = trace.sites
    with intervene({site: off(1)}, torch_calls=model):
        (expected,) = torch.autograd.grad(forward(X).sin().sum(), [X])
    with intervene({site: off(1)}, torch_calls=model):
        loss = checkpoint(forward, X, use_reentrant=use_reentrant).sin().sum()
    loss.backward()
    assert X.grad is not None
    torch.testing.assert_close(X.grad, expected)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_edits_of_checkpointed_layers_without_names_are_refused(use_reentrant: bool) -> None:
    layer, X = MultiHeadAttention(8, 2), torch.randn(2, 5, 8, requires_grad=True)
    with intervene({"attention.0": off(1)}):
        loss = run(layer, X, use_reentrant=use_reentrant).sum()
    with pytest.raises(ValueError, match="layers with names"):
        loss.backward()


@pytest.mark.parametrize("softcap", [None, 0.5])
def test_vmap_is_refused_within_record_and_works_without(softcap: float | None) -> None:
    queries, keys, values = (torch.randn(3, *shape) for shape in ((1, H, 4, 5), (1, H, K, 5), (1, H, K, 6)))

    def one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, softcap=softcap)

    expected = torch.stack([one(*each) for each in zip(queries, keys, values, strict=True)])
    torch.testing.assert_close(torch.func.vmap(one)(queries, keys, values), expected)
    for differentiable in (False, True):
        with record(differentiable) as trace, pytest.raises(ValueError, match="cannot be recorded within torch.func"):
            torch.func.vmap(one)(queries, keys, values)
        assert trace.sites == ()


def test_vmap_over_given_weights_is_refused_too() -> None:
    layer, X = AdditiveAttention(8, 8, 8), torch.randn(3, 2, 5, 8)
    with record(), pytest.raises(ValueError, match="cannot be recorded within torch.func"):
        torch.func.vmap(lambda x: layer(x, x, x))(X)


def test_of_several_tensors_one_in_a_transform_is_enough() -> None:
    queries, keys, values = tensors()
    masks = torch.ones(3, B, 1, 1, K, dtype=torch.bool)
    with record(), pytest.raises(ValueError, match="cannot be recorded within torch.func"):
        torch.func.vmap(lambda mask: attend(queries, keys, values, mask=mask))(masks)


@pytest.mark.parametrize("softcap", [None, 0.5])
def test_gradients_by_torch_func_are_recorded(softcap: float | None) -> None:
    queries, keys, values = tensors()
    bias = random_bias(1, H, 1, K)

    def loss(q: Tensor, b: Tensor) -> Tensor:
        return attend(q, keys, values, bias=b, softcap=softcap).sin().sum()

    (expected,) = torch.autograd.grad(loss(q := queries.clone().requires_grad_(), bias), [q])
    with record() as trace:
        found = torch.func.grad(loss, argnums=0)(queries, bias)
    torch.testing.assert_close(found, expected)
    weights = brute_force(queries, keys, bias=bias, softcap=softcap)
    torch.testing.assert_close(trace["attention.0"].weights().double(), weights, atol=1e-6, rtol=0)
    assert trace.nbytes == 4 * (queries.numel() + keys.numel() + bias.numel())
    assert trace.to("cpu").sites == trace.sites


def test_weights_in_the_graph_are_not_for_torch_func() -> None:
    queries, keys, values = tensors()
    with record(differentiable=True), pytest.raises(ValueError, match="nor its weights in the graph"):
        torch.func.grad(lambda q: attend(q, keys, values).sum())(queries)


def test_after_a_refusal_the_recorder_hears_on() -> None:
    queries, keys, values = tensors()
    with record() as trace:
        with pytest.raises(ValueError, match="cannot be recorded within torch.func"):
            torch.func.vmap(lambda q: attend(q, q, q))(torch.randn(3, 1, 1, 4, 5))
        attend(queries, keys, values)
    weights = trace["attention.0"].weights().double()
    torch.testing.assert_close(weights, brute_force(queries, keys), atol=1e-6, rtol=0)


def test_a_recording_can_be_moved_and_merged_while_autograd_is_at_work() -> None:
    layer, X = MultiHeadAttention(8, 2), torch.randn(1, 3, 8, requires_grad=True)
    with record() as trace:
        loss = run(layer, X).sum()
    found: list[tuple[str, ...]] = []
    X.register_hook(lambda _: found.extend([trace.to("cpu").sites, Trace.merge({"a": trace}).sites]))
    loss.backward()
    assert found == [("attention.0",), ("a/attention.0",)]
