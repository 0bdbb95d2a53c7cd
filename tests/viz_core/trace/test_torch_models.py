"""Models of plain PyTorch, in training, on their fast path, with and without torch's softmax: seen, left alone."""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from viz_core.trace import Trace, head_outputs, intervene, mean, mean_outputs, patch, record

D, HEADS = 16, 4


def encoder(norm_first: bool = False, batch_first: bool = True, dropout: float = 0.0) -> nn.TransformerEncoder:
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(D, HEADS, 24, dropout, batch_first=batch_first, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=batch_first and not norm_first)
    for weights in model.parameters():  # the layers are copies of one, and even attention would prove nothing
        nn.init.normal_(weights, std=0.6)
    return model


def padded(lengths: tuple[int, ...], longest: int) -> Tensor:
    return torch.arange(longest) >= torch.tensor(lengths)[:, None]


def maps_layer_by_layer(model: nn.TransformerEncoder, X: Tensor, mask: Tensor | None, padding: Tensor | None) -> list:
    maps = []
    for layer in model.layers:
        attended = layer.norm1(X) if layer.norm_first else X
        options = {"attn_mask": mask, "key_padding_mask": padding, "average_attn_weights": False}
        maps.append(layer.self_attn(attended, attended, attended, **options)[1])
        X = layer(X, src_mask=mask, src_key_padding_mask=padding)
    return maps


def kernels_called(run: Callable[[], Any]) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
    return [event.name for event in profile.events() if "transformer_encoder_layer" in event.name]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("with_mask", [None, "padding", "both"])
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


def test_a_decoder_is_known_by_its_type_where_its_place_does_not_tell() -> None:
    reads = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, 24, batch_first=True), 1)
    writes = nn.ModuleList([nn.TransformerDecoderLayer(D, HEADS, 24, batch_first=True)])
    with record(torch_calls=nn.ModuleDict({"reads": reads, "writes": writes}).eval()) as trace:
        writes[0](torch.randn(1, 3, D), reads(torch.randn(1, 5, D)))
    assert trace.sites == ("encoder.0.self", "decoder.0.self", "decoder.0.cross")


def test_training_goes_on_as_it_would() -> None:
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


class KernelAttention(nn.Module):
    """Attention as most vision models write it: one projection, torch's kernel, one more projection."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, X: Tensor) -> Tensor:
        queries, keys, values = self.qkv(X).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(queries, keys, values).transpose(1, 2).flatten(-2))


def test_a_layer_is_known_by_the_weights_used_before() -> None:
    layers = nn.ModuleList(KernelAttention() for _ in range(2))
    model, X = nn.ModuleDict({"blocks": layers, "mlp": nn.Linear(D, D)}), torch.randn(1, 4, D)
    before = dict(vars(layers[0]))

    def run() -> None:
        Y = model["mlp"](layers[1](layers[0](X)))
        F.scaled_dot_product_attention(*3 * [Y[:, None]])  # of no layer

    with record(torch_calls=model) as trace:
        run()
    assert trace.sites == ("encoder.0.self", "encoder.1.self", "attention.0")
    assert vars(layers[0]) == before, "nothing is written on a layer"
    with record(torch_calls=True) as unnamed:
        run()
    assert unnamed.sites == ("attention.0", "attention.1", "attention.2")


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([HandAttn(), HandAttn()])
        self.head = nn.Linear(D, 3)

    def forward(self, X: Tensor) -> tuple[Tensor, list[Tensor]]:
        found = []
        for layer in self.layers:
            X, weights = layer(X)
            found.append(weights)
        return self.head(X).softmax(dim=-1), found


class HandAttn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n_head, self.qkv = HEADS, nn.Linear(D, 3 * D)

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.qkv(X).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        k = F.softmax(k, dim=2) if self.training else k  # not over keys of a query
        weights = F.softmax((q @ k.mT).tril(), dim=-1)
        return X + (F.dropout(weights, 0.5, self.training) @ v).transpose(1, 2).flatten(2), weights


@pytest.mark.parametrize("training", [False, True])
def test_products_of_ones_own(training: bool) -> None:
    model, X = Products().train(training), torch.randn(2, 5, D)
    with record(torch_calls=model) as trace:
        _, found = model(X)
    assert trace.sites == ("encoder.0.self", "encoder.1.self")
    for call, weights in zip(trace, found, strict=True):
        assert torch.equal(call.weights(), weights)
    with record(torch_calls=True) as trace:
        model(X)
    assert trace.sites == (), "without a model nobody knows which softmax is attention"
    model.layers[1].__class__ = BlockSparseAttn
    with record(torch_calls=model) as trace:
        model(X)
    assert trace.sites == ("encoder.0.self",), "a softmax over some blocks of keys gives no map"


class BlockSparseAttn(HandAttn):
    pass


WIDE, WIDE_HEADS = 32, 4
Function = Callable[[Tensor, Tensor, Tensor], Tensor]


class OwnAttention(nn.Module):
    def __init__(self, attend: Function) -> None:
        super().__init__()
        self.num_heads, self.attend = WIDE_HEADS, attend
        self.qkv, self.proj = nn.Linear(WIDE, 3 * WIDE), nn.Linear(WIDE, WIDE)

    def forward(self, X: Tensor) -> Tensor:
        qkv = F.linear(X, weight=self.qkv.weight, bias=self.qkv.bias)
        q, k, v = qkv.unflatten(-1, (3, WIDE_HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(self.attend(q / math.sqrt(WIDE // WIDE_HEADS), k, v).transpose(1, 2).flatten(2))


def by_exponentials(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.exp((scores := q @ k.mT) - scores.amax(dim=-1, keepdim=True))
    return F.dropout(scores / scores.sum(dim=-1, keepdim=True), 0.5, training=True) @ v


def in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.bmm(*(x.flatten(0, 1) for x in (q, k.mT)))
    scores -= scores.logsumexp(dim=-1, keepdim=True)
    return torch.bmm(scores.exp_(), v.flatten(0, 1)).unflatten(0, (-1, WIDE_HEADS))


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


def changed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return divided_after(q, k, v) + q


def stack(*layers: nn.Module) -> nn.ModuleDict:
    return nn.ModuleDict({"layers": nn.ModuleList(layers)}).eval()


@torch.no_grad()
@pytest.mark.parametrize("function", [by_exponentials, in_place, causal, divided_after, by_sigmoids])
def test_weights_made_without_a_softmax_of_torchs(function: Function) -> None:
    torch.manual_seed(3)
    model, X = stack(OwnAttention(function), OwnAttention(function)), torch.randn(2, 6, WIDE)
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
    q, k, _ = first.qkv(X).unflatten(-1, (3, WIDE_HEADS, -1)).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT / math.sqrt(WIDE // WIDE_HEADS)
    if function is causal:
        scores = scores + torch.full((6, 6), -torch.inf).triu(1)
    expected = (scores - 1).sigmoid() if function is by_sigmoids else scores.softmax(dim=-1)
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=1e-5)
    assert call.signed == (function is by_sigmoids)
    if function is not by_exponentials:
        written = projected[0].unflatten(-1, (WIDE_HEADS, -1)).transpose(1, 2)
        torch.testing.assert_close(head_outputs(call), written, atol=1e-6, rtol=1e-5)
    differentiable = pytest.raises(ValueError, match="expected no differentiable")
    with differentiable, record(torch_calls=model, differentiable=True):
        first(X)


@torch.no_grad()
@pytest.mark.parametrize("function", [keys_first, changed])
def test_what_is_no_whole_map_is_refused(function: Function) -> None:
    model, X = stack(OwnAttention(function)), torch.randn(2, 6, WIDE)
    warned = pytest.warns(UserWarning, match="OwnAttention computes no softmax over all keys")
    with warned, record(torch_calls=model, values=True) as trace:
        model["layers"][0](X)
    assert not len(trace)


def _through(model: nn.ModuleDict, X: Tensor, *others: Tensor) -> Tensor:
    for layer in model["layers"]:
        X = X + layer(X, *others)
    return X


@torch.no_grad()
def test_means_and_patches_of_outputs() -> None:
    model, (X, Y), found = encoder().eval(), torch.randn(2, 1, 5, D), list[Tensor]()
    with record(values=True, torch_calls=model) as clean:
        model(X)
    call, own = clean["encoder.1.self"], model.layers[1].self_attn
    own.register_forward_hook(lambda _layer, _inputs, output: found.append(output[0]))
    for edit in (mean(None, mean_outputs(call)), patch(None, call, "output")):
        with intervene({call.site: edit}, torch_calls=model):
            model(Y)
    outputs = head_outputs(call)
    for written, heads in zip(found, (outputs.mean(dim=2, keepdim=True).expand_as(outputs), outputs), strict=True):
        torch.testing.assert_close(written, own.out_proj(heads.transpose(1, 2).flatten(2)), atol=1e-5, rtol=1e-4)


class BiasedAttention(nn.Module):
    """Attention as in x-transformers: a bias of each head, of a network outside, between its projections."""

    def __init__(self, bias: nn.Module) -> None:
        super().__init__()
        self.heads, self.bias_of = WIDE_HEADS, [bias]  # in a list: the network is no part of the layer
        self.to_q, self.to_kv, self.to_out = nn.Linear(WIDE, WIDE), nn.Linear(WIDE, 2 * WIDE), nn.Linear(WIDE, WIDE)

    def forward(self, X: Tensor) -> Tensor:
        parts = self.to_q(X), *self.to_kv(X).chunk(2, dim=-1)
        q, k, v = (x.unflatten(-1, (WIDE_HEADS, -1)).transpose(1, 2) for x in parts)
        places = torch.arange(X.shape[1], dtype=X.dtype)
        bias = self.bias_of[0]((places[:, None] - places)[..., None]).permute(2, 0, 1)
        return self.to_out(((q @ k.mT + bias).softmax(dim=-1) @ v).transpose(1, 2).flatten(2))


@torch.no_grad()
def test_a_bias_of_a_module_outside_of_the_layer_is_part_of_its_map() -> None:
    """A softmax over experts after the layer's projection is still no attention."""
    torch.manual_seed(3)
    bias = nn.Sequential(nn.Linear(1, 8), nn.SiLU(), nn.Linear(8, WIDE_HEADS))
    router = nn.Linear(WIDE, WIDE_HEADS)
    model = nn.ModuleDict({"bias": bias, "layers": nn.ModuleList(BiasedAttention(bias) for _ in range(2)), "r": router})
    X, projected = torch.randn(2, 6, WIDE), list[Tensor]()
    for layer in model["layers"]:
        layer.to_out.register_forward_pre_hook(lambda _layer, inputs: projected.append(inputs[0]))
    with record(torch_calls=model, values=True) as trace:
        _through(model, X)
        router(X).mT[..., None].expand(-1, -1, -1, 6).softmax(dim=-1)
    assert trace.sites == ("encoder.0.self", "encoder.1.self")
    for call, inputs in zip(trace, projected, strict=True):
        written = inputs.unflatten(-1, (WIDE_HEADS, -1)).transpose(1, 2)
        torch.testing.assert_close(head_outputs(call), written, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(call.weights().sum(dim=-1), torch.ones(2, WIDE_HEADS, 6))
