"""Whole models of plain PyTorch, in training and in evaluation with their fast path: seen, named, and left alone."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from viz_core.trace import Trace, record

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
        options = {"attn_mask": mask, "key_padding_mask": padding, "average_attn_weights": False}
        maps.append(layer.self_attn(attended, attended, attended, **options)[1])
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
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.reads = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, 24, batch_first=True), 1)
            self.writes = nn.ModuleList([nn.TransformerDecoderLayer(D, HEADS, 24, batch_first=True)])

    model = Both().eval()
    with record(torch_calls=model) as trace:
        model.writes[0](torch.randn(1, 3, D), model.reads(torch.randn(1, 5, D)))
    assert trace.sites == ("encoder.0.self", "decoder.0.self", "decoder.0.cross")


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


# Whose calls are heard


class Products(nn.Module):
    """Attention as it is written by hand, and a softmax that is none."""

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
