"""Plain PyTorch with the rights of our own layers: values, contributions, means and patches, weights in the graph."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tests.viz_core.trace.test_torch_models import HEADS, Block, D, encoder, padded
from viz_core.hub import coverage
from viz_core.maps.contributions import contribution_norms, contribution_shares, contribution_sum
from viz_core.trace import gate, head_outputs, intervene, mean, mean_outputs, off, patch, record


class OwnProductsAttention(nn.Module):
    """Attention by matrix products with a projection behind it, gated or not."""

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
    "kernel": lambda: (model := Block(), model.attn.proj),
    "products": lambda: (model := OwnProductsAttention(), model.proj),
    "gated products": lambda: (model := OwnProductsAttention(gated=True), model.proj),
}


def output_of_projection(model: nn.Module, W_o: nn.Linear, X: Tensor) -> tuple[Any, Tensor]:
    """The recorded call of the only layer, and what its projection gave without its bias."""
    wrapped = nn.ModuleList([model])
    outputs: list[Tensor] = []
    attention = getattr(model, "self_attn", None)
    hook = (attention or W_o).register_forward_hook(
        lambda _layer, _inputs, output: outputs.append(output[0] if isinstance(output, tuple) else output)
    )
    with record(values=True, torch_calls=wrapped) as trace, torch.enable_grad():
        model(X)
    hook.remove()
    return trace["encoder.0.self"], outputs[0].detach() - W_o.bias.detach()


@pytest.mark.parametrize("name", LAYERS)
def test_contributions_add_up_to_the_output(name: str) -> None:
    torch.manual_seed(5)
    model, W_o = LAYERS[name]()
    call, output = output_of_projection(model.eval(), W_o, torch.randn(2, 5, D))
    assert (call.source.gate is not None) == ("gated" in name)
    torch.testing.assert_close(contribution_sum(call, W_o), output, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(contribution_sum(call.text(1), W_o)[0], output[1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("first", ["recorder", "intervention"])
@pytest.mark.parametrize("name", ["kernel", "nn.MultiheadAttention"])
@torch.no_grad()
def test_contributions_of_edited_heads(name: str, first: str) -> None:
    """An edit that multiplies what a head writes is not taken for a gate of the layer's own as well."""
    model, W_o = LAYERS[name]()
    wrapped, X, outputs = nn.ModuleList([model.train()]), torch.randn(2, 5, D), list[Tensor]()
    layer = getattr(model, "self_attn", W_o)
    hook = layer.register_forward_hook(
        lambda _layer, _inputs, output: outputs.append(output[0] if isinstance(output, tuple) else output)
    )
    edits = {"encoder.0.self": [gate(1, 0.5), off(3)]}
    with ExitStack() as stack:
        for who in (first, "recorder" if first == "intervention" else "intervention"):
            if who == "recorder":
                trace = stack.enter_context(record(values=True, torch_calls=wrapped))
            else:
                stack.enter_context(intervene(edits, torch_calls=wrapped))
        model(X)
        model(X)
    hook.remove()
    for call, output in zip(trace, outputs, strict=True):
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
    shares = contribution_shares(trace, model)["encoder.0.self"].weights()
    norms = contribution_norms(call, layer.out_proj)
    torch.testing.assert_close(shares[0], (norms / norms.sum(dim=-1, keepdim=True))[0])


@torch.no_grad()
def test_means_and_patches_of_outputs() -> None:
    model, X, Y = encoder().eval(), torch.randn(1, 5, D), torch.randn(1, 5, D)
    with record(values=True, torch_calls=model) as clean:
        model(X)
    site = "encoder.1.self"
    own, given = model.layers[1].self_attn, list[Tensor]()
    hook = own.register_forward_hook(lambda _layer, _inputs, output: given.append(output[0]))
    edits = [mean(None, mean_outputs(clean[site])), patch(None, clean[site], "output")]
    for edit in edits:
        with intervene({site: edit}, torch_calls=model):
            model(Y)
    hook.remove()
    outputs = head_outputs(clean[site])
    for found, heads in zip(given, (outputs.mean(dim=2, keepdim=True).expand_as(outputs), outputs), strict=True):
        torch.testing.assert_close(found, own.out_proj(heads.transpose(1, 2).flatten(2)), atol=1e-5, rtol=1e-4)


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


def test_weights_in_the_graph_of_a_whole_model_whose_fast_path_would_be_open() -> None:
    X, model = torch.randn(2, 5, D), encoder().eval().requires_grad_(False)
    plain = model(X)
    with record(differentiable=True, torch_calls=model) as trace:
        output = model(X)
    torch.testing.assert_close(output, plain, atol=1e-5, rtol=1e-4)
    for call in trace:
        (gradient,) = torch.autograd.grad(output[0, 0, 0], call.graph_weights, retain_graph=True)
        assert gradient.any(), call.site
    refused = pytest.raises(ValueError, match="expected no intervene block")
    with refused, record(differentiable=True, torch_calls=model), intervene({"encoder.0.self": off(1)}, model):
        model(X)


@pytest.mark.parametrize("shape", [(), (HEADS,), (2, HEADS), (3, 2, HEADS)])
def test_weights_in_the_graph_of_the_kernel(shape: tuple[int, ...]) -> None:
    q, k, v = (torch.randn(*shape, 5, 8, requires_grad=True) for _ in range(3))
    plain = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    with record(differentiable=True, torch_calls=True) as trace:
        output = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert output.shape == plain.shape
    torch.testing.assert_close(output, plain)
    expected = torch.autograd.grad(plain.square().sum(), [q, k, v])
    found = torch.autograd.grad(output.square().sum(), [q, k, v, trace[0].graph_weights])
    torch.testing.assert_close(found[:3], expected)


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
    with pytest.raises(ValueError, match="expected no differentiable"), record(True, model):
        first(X, lengths)
    assert torch.equal(first(X, lengths), plain), "outside of a recording it does what it did"
    monkeypatch.setitem(globals(), "compiled_flex", torch.compile(flex_attention, backend="eager"))  # of a wrapper
    with record(torch_calls=model) as again:
        first(X, lengths)
    assert again.sites == trace.sites
