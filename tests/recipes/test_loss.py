"""The chunked loss against torch's label-smoothed cross-entropy: its value and all three gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from recipes import loss as loss_module
from recipes.loss import smoothed_cross_entropy

VOCAB, WIDTH = 37, 12


def inputs(tokens: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    hidden = torch.randn(tokens, WIDTH).to(dtype).requires_grad_()
    weight = torch.randn(VOCAB, WIDTH, requires_grad=True)
    bias = torch.randn(VOCAB, requires_grad=True)
    return hidden, weight, bias, torch.randint(0, VOCAB, (tokens,))


def reference(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> list[Tensor]:
    """Value and gradients by torch, in float64."""
    leaves = [t.detach().double().requires_grad_() for t in (hidden, weight, bias)]
    logits = leaves[0] @ leaves[1].T + leaves[2]
    value = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    return [value, *torch.autograd.grad(value, leaves)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("tokens", [1, 511, 512, 513, 1300])
def test_equals_torchs_loss(tokens: int, smoothing: float) -> None:
    hidden, weight, bias, targets = inputs(tokens)
    expected, *gradients = reference(hidden, weight, bias, targets, smoothing)
    value = smoothed_cross_entropy(hidden, weight, bias, targets, smoothing)
    assert value.shape == ()
    torch.testing.assert_close(value.double(), expected, atol=0, rtol=1e-5)
    value.backward()
    for leaf, gradient in zip((hidden, weight, bias), gradients, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(leaf.grad.double(), gradient, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_the_size_of_a_chunk_does_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "_CHUNK", chunk)
    hidden, weight, bias, targets = inputs(50)
    expected, *gradients = reference(hidden, weight, bias, targets, 0.1)
    value = smoothed_cross_entropy(hidden, weight, bias, targets, 0.1)
    torch.testing.assert_close(value.double(), expected, atol=0, rtol=1e-5)
    value.backward()
    for leaf, gradient in zip((hidden, weight, bias), gradients, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(leaf.grad.double(), gradient, atol=1e-4, rtol=1e-4)


def test_gradients_follow_what_comes_after() -> None:
    hidden, weight, bias, targets = inputs(20)
    _, *gradients = reference(hidden, weight, bias, targets, 0.1)
    (smoothed_cross_entropy(hidden, weight, bias, targets, 0.1) / 20 * -3).backward()
    for leaf, gradient in zip((hidden, weight, bias), gradients, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(leaf.grad.double(), gradient * -3 / 20, atol=1e-5, rtol=1e-4)


def test_bfloat16_states_with_float32_parameters() -> None:
    """Products round to bfloat16, sums do not: a percent of the value, a few of the gradients' length."""
    hidden, weight, bias, targets = inputs(1300, torch.bfloat16)
    expected, *gradients = reference(hidden, weight, bias, targets, 0.1)
    value = smoothed_cross_entropy(hidden, weight, bias, targets, 0.1)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), expected, atol=0, rtol=1e-2)
    value.backward()
    for leaf, gradient in zip((hidden, weight, bias), gradients, strict=True):
        assert leaf.grad is not None
        assert leaf.grad.dtype == leaf.dtype
        assert (leaf.grad.double() - gradient).norm() < 0.03 * gradient.norm()


def test_a_shared_matrix_gets_both_gradients() -> None:
    """Embedding and output layer are one parameter: autograd adds what each sends back."""
    shared, bias = torch.randn(VOCAB, WIDTH, requires_grad=True), torch.zeros(VOCAB)
    ids, targets = torch.randint(0, VOCAB, (9,)), torch.randint(0, VOCAB, (9,))
    smoothed_cross_entropy(shared[ids], shared, bias, targets, 0.1).backward()
    twin = shared.detach().clone().requires_grad_()
    F.cross_entropy(twin[ids] @ twin.T, targets, label_smoothing=0.1, reduction="sum").backward()
    assert shared.grad is not None
    torch.testing.assert_close(shared.grad, twin.grad, atol=1e-4, rtol=1e-4)


def test_large_logits_do_not_overflow() -> None:
    hidden = torch.full((2, 1), 100.0, requires_grad=True)
    weight = torch.tensor([[10.0], [-10.0]], requires_grad=True)
    value = smoothed_cross_entropy(hidden, weight, torch.zeros(2), torch.tensor([0, 1]), 0.0)
    assert value.item() == pytest.approx(2000.0)
    value.backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()
