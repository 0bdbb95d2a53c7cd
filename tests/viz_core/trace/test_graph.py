"""Recording in the graph: the same outputs and weights as the fused kernel, and gradients by the weights themselves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from viz_core.trace import attend, record

SOME = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]).bool()
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "mask with an empty row": {"mask": SOME[None, None]},
    "bias": {"bias": torch.randn(1, 4, 3, 5, generator=torch.Generator().manual_seed(1))},
    "scale": {"scale": 0.7},
    "softcap": {"softcap": 0.5},
}


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Four query heads on two key heads."""
    return torch.randn(2, 4, 3, 6), torch.randn(2, 2, 5, 6), torch.randn(2, 2, 5, 7)


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_weights_are_those_of_the_kernel(name: str) -> None:
    q, k, v = inputs()
    with record() as plain:
        expected = attend(q, k, v, site="a.0.self", **CASES[name])
    with record(differentiable=True) as trace:
        found = attend(q, k, v, site="a.0.self", **CASES[name])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(trace["a.0.self"].weights(), plain["a.0.self"].weights(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", CASES)
def test_the_output_is_linear_in_the_weights(name: str) -> None:
    """d sum(g * (W V)) / dW = g V^T, whatever made the weights."""
    q, k, v = inputs()
    g = torch.randn(2, 4, 3, 7)
    with record(differentiable=True) as trace:
        out = attend(q, k, v, **CASES[name])
    (found,) = torch.autograd.grad((g * out).sum(), [trace["attention.0"].graph_weights])
    torch.testing.assert_close(found, g @ v.repeat_interleave(2, dim=1).transpose(2, 3))


def test_gradients_still_reach_queries_keys_and_values() -> None:
    q, k, v = (t.requires_grad_() for t in inputs())
    expected = torch.autograd.grad(attend(q, k, v).sin().sum(), [q, k, v])
    with record(differentiable=True):
        found = torch.autograd.grad(attend(q, k, v).sin().sum(), [q, k, v])
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
