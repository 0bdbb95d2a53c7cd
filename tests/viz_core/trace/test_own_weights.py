"""Attention of plain PyTorch without torch's softmax, and with biases of a module outside of the layer."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from viz_core.hub import coverage, verify
from viz_core.trace import head_outputs, record

D, HEADS = 32, 4
Function = Callable[[Tensor, Tensor, Tensor], Tensor]


class OwnAttention(nn.Module):
    """Projections around what a function does with queries, keys and values of each head."""

    def __init__(self, attend: Function) -> None:
        super().__init__()
        self.num_heads, self.attend = HEADS, attend
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, X: Tensor) -> Tensor:
        qkv = F.linear(X, weight=self.qkv.weight, bias=self.qkv.bias)
        q, k, v = qkv.unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(self.attend(q / math.sqrt(D // HEADS), k, v).transpose(1, 2).flatten(2))


def by_exponentials(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.exp((scores := q @ k.mT) - scores.amax(dim=-1, keepdim=True))
    return F.dropout(scores / scores.sum(dim=-1, keepdim=True), 0.5, training=True) @ v


def in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.bmm(*(x.flatten(0, 1) for x in (q, k.mT)))
    scores -= scores.logsumexp(dim=-1, keepdim=True)
    return torch.bmm(scores.exp_(), v.flatten(0, 1)).unflatten(0, (-1, HEADS))


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    hidden = torch.ones(q.shape[2], k.shape[2]).triu(1).bool()
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k).masked_fill(hidden, -torch.inf).exp()
    return torch.einsum("bhqk,bkd->bhqd", scores / scores.sum(dim=-1, keepdim=True), v[:, 0])


def divided_after(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.exp(q @ k.mT)
    return (scores @ v) / scores.sum(dim=-1, keepdim=True)


def by_sigmoids(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.sigmoid(q @ k.mT - 1) @ v


def keys_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.exp() @ (k.exp().mT @ v)


def in_halves(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    halves = zip(q.chunk(2, dim=2), k.chunk(2, dim=2), v.chunk(2, dim=2), strict=True)
    return torch.cat([divided_after(*half) for half in halves], dim=2)


def changed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return divided_after(q, k, v) + q


def stack(*layers: nn.Module) -> nn.ModuleDict:
    return nn.ModuleDict({"layers": nn.ModuleList(layers)}).eval()


@torch.no_grad()
@pytest.mark.parametrize("function", [by_exponentials, in_place, causal, divided_after, by_sigmoids])
def test_weights_made_without_a_softmax_of_torchs(function: Function) -> None:
    """Their products with values are what the projection reads; those of dropout are recorded before it."""
    torch.manual_seed(3)
    model, X = stack(OwnAttention(function), OwnAttention(function)), torch.randn(2, 6, D)
    first, projected = model["layers"][0], list[Tensor]()
    first.proj.register_forward_pre_hook(lambda _layer, inputs: projected.append(inputs[0]))
    torch.manual_seed(4)
    plain = first(X)
    torch.manual_seed(4)
    with record(torch_calls=model, values=True) as trace:
        assert torch.equal(first(X), plain)
        model["layers"][1](X)
    assert trace.sites == ("encoder.0.self", "encoder.1.self")
    call, weights = trace[0], trace[0].weights()
    q, k, _ = first.qkv(X).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT / math.sqrt(D // HEADS)
    if function is causal:
        scores = scores + torch.full((6, 6), -torch.inf).triu(1)
    expected = (scores - 1).sigmoid() if function is by_sigmoids else scores.softmax(dim=-1)
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=1e-5)
    assert call.signed == (function is by_sigmoids)
    if function is not by_exponentials:
        written = projected[0].unflatten(-1, (HEADS, -1)).transpose(1, 2)
        torch.testing.assert_close(head_outputs(call), written, atol=1e-6, rtol=1e-5)
    with record(torch_calls=model) as again:
        first(X)
    assert torch.equal(again[0].weights(), weights)
    differentiable = pytest.raises(ValueError, match="expected no differentiable")
    with differentiable, record(torch_calls=model, differentiable=True):
        first(X)


@torch.no_grad()
@pytest.mark.parametrize("function", [keys_first, in_halves, changed])
def test_what_is_no_whole_map_is_refused(function: Function) -> None:
    model, X = stack(OwnAttention(function)), torch.randn(2, 6, D)
    warned = pytest.warns(UserWarning, match="OwnAttention computes no softmax over all keys")
    with warned, record(torch_calls=model, values=True) as trace:
        model["layers"][0](X)
    assert not len(trace)


class ExponentialAttention(OwnAttention):
    """Attention whose code says what it does."""

    def __init__(self) -> None:
        super().__init__(divided_after)

    def forward(self, X: Tensor) -> Tensor:
        q, k, v = self.qkv(X).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        weights = torch.exp(q @ k.mT)
        return self.proj((weights / weights.sum(dim=-1, keepdim=True) @ v).transpose(1, 2).flatten(2))


@torch.no_grad()
def test_coverage_and_verification_know_it() -> None:
    model = stack(ExponentialAttention(), ExponentialAttention())
    assert [row.site for row in coverage(model)] == ["encoder.0.self", "encoder.1.self"]
    model.forward = partial(_through, model)
    report = verify(model, torch.randn(2, 6, D))
    assert (report.output_error, report.uncovered) == (0, ())
    assert set(report.value_errors) == {"encoder.0.self", "encoder.1.self"}
    assert report.value_error is not None
    assert report.value_error < 1e-6


def _through(model: nn.ModuleDict, X: Tensor, *others: Tensor) -> Tensor:
    for layer in model["layers"]:
        X = X + layer(X, *others)
    return X


class BiasedAttention(nn.Module):
    """Attention as in x-transformers: a bias of each head, of a network outside, between its projections."""

    def __init__(self, bias: nn.Module) -> None:
        super().__init__()
        self.heads, self.bias_of = HEADS, [bias]  # in a list: the network is no part of the layer
        self.to_q, self.to_kv, self.to_out = nn.Linear(D, D), nn.Linear(D, 2 * D), nn.Linear(D, D)

    def forward(self, X: Tensor) -> Tensor:
        q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (self.to_q(X), *self.to_kv(X).chunk(2, -1)))
        places = torch.arange(X.shape[1], dtype=X.dtype)
        bias = self.bias_of[0]((places[:, None] - places)[..., None]).permute(2, 0, 1)
        return self.to_out(((q @ k.mT + bias).softmax(dim=-1) @ v).transpose(1, 2).flatten(2))


@torch.no_grad()
def test_a_bias_of_a_module_outside_of_the_layer_is_part_of_its_map() -> None:
    """A softmax over experts after the layer's projection is still no attention."""
    torch.manual_seed(3)
    bias = nn.Sequential(nn.Linear(1, 8), nn.SiLU(), nn.Linear(8, HEADS))
    router = nn.Linear(D, HEADS)
    model = nn.ModuleDict({"bias": bias, "layers": nn.ModuleList(BiasedAttention(bias) for _ in range(2)), "r": router})
    X, projected = torch.randn(2, 6, D), list[Tensor]()
    for layer in model["layers"]:
        layer.to_out.register_forward_pre_hook(lambda _layer, inputs: projected.append(inputs[0]))
    with record(torch_calls=model, values=True) as trace:
        _through(model, X)
        router(X).mT[..., None].expand(-1, -1, -1, 6).softmax(dim=-1)
    assert trace.sites == ("encoder.0.self", "encoder.1.self")
    for call, inputs in zip(trace, projected, strict=True):
        written = inputs.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        torch.testing.assert_close(head_outputs(call), written, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(call.weights().sum(dim=-1), torch.ones(2, HEADS, 6))
