"""Weights that are changed after the softmax are recorded as they are used, by what the heads write."""

import pytest
import torch
from torch import Tensor, nn

from viz_core.maps.contributions import contribution_sum
from viz_core.trace import record


class OwnAttention(nn.Module):
    """Attention by hand that does one of several things to its weights after the softmax."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.num_heads, self.kind = 4, kind
        self.qkv, self.proj, self.q2 = nn.Linear(32, 96), nn.Linear(32, 32, bias=False), nn.Linear(32, 64)
        self.mix = nn.Parameter(torch.randn(4, 4))
        self.used, self.values = torch.empty(0), torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        weights = (queries @ keys.mT / 8**0.5).softmax(-1)
        if self.kind == "masked, not renormalised":
            weights = weights * torch.ones_like(weights[0, 0]).tril()
        elif self.kind == "masked in place and renormalised":
            weights *= torch.ones_like(weights[0, 0]).tril()
            weights /= weights.sum(-1, keepdim=True)
        elif self.kind == "difference":
            q2, k2 = self.q2(x).unflatten(-1, (2, 4, 8)).permute(2, 0, 3, 1, 4)
            weights = weights - 0.5 * (q2 @ k2.mT / 8**0.5).softmax(-1)
        elif self.kind == "talking heads":
            weights = torch.einsum("b h i j, h g -> b g i j", weights, self.mix)
        self.used, self.values = weights.detach().clone(), values.detach()
        if self.kind == "dropout":
            weights = nn.functional.dropout(weights, 0.5)
        elif self.kind == "half":
            out = (weights.bfloat16().flatten(0, 1) @ values.bfloat16().flatten(0, 1)).unflatten(0, (-1, 4)).float()
            return self.proj(out.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]
        if self.kind in ("talking heads", "einsum"):
            out = torch.einsum("b h i j, b h j d -> b h i d", weights, values)
        else:
            out = weights @ values
        return self.proj(out.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


KINDS = {
    "plain": False,
    "einsum": False,
    "dropout": False,
    "half": False,
    "masked, not renormalised": True,
    "masked in place and renormalised": False,
    "difference": True,
    "talking heads": True,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [6, 8])  # as many tokens as a head is wide: queries look like weights
def test_the_map_is_what_the_values_are_multiplied_by(kind: str, n: int) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(OwnAttention(kind), OwnAttention(kind))
    x = torch.randn(2, n, 32)
    torch.manual_seed(1)
    with torch.no_grad():
        expected = net(x)
    torch.manual_seed(1)
    with torch.no_grad(), record(torch_calls=net, values=True) as trace:
        assert torch.equal(net(x), expected)
    assert trace.sites == ("encoder.0.self", "encoder.1.self")
    for call, layer in zip(trace, net, strict=True):
        torch.testing.assert_close(call.weights(), layer.used, atol=1e-6, rtol=0)
        assert call.signed is KINDS[kind]
        if kind not in ("dropout", "half"):
            written = layer.proj((layer.used @ layer.values).transpose(1, 2).flatten(2))
            torch.testing.assert_close(contribution_sum(call, layer.proj), written, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["plain", "difference", "talking heads"])
def test_a_differentiable_recording_holds_the_weights_used(kind: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(OwnAttention(kind))
    with record(torch_calls=net, differentiable=True) as trace:
        output = net(torch.randn(2, 6, 32))
    (gradient,) = torch.autograd.grad(output.sum(), trace["encoder.0.self"].graph_weights)
    values = net[0].values
    expected = net[0].proj.weight.sum(0).unflatten(0, (4, 8))[None, :, None] @ values.mT
    torch.testing.assert_close(gradient, expected.expand_as(gradient), atol=1e-5, rtol=1e-5)
