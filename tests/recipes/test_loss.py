"""The chunked loss against torch's label-smoothed cross-entropy: its value and all three gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from recipes.loss import fast_pass, smoothed_cross_entropy

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


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("tokens", [1, 511, 512, 513, 1300])
def test_equals_torchs_loss_with_any_gradient_from_above(tokens: int, smoothing: float) -> None:
    hidden, weight, bias, targets = inputs(tokens)
    expected, *gradients = reference(hidden, weight, bias, targets, smoothing)
    value = smoothed_cross_entropy(hidden, weight, bias, targets, smoothing)
    assert value.shape == ()
    torch.testing.assert_close(value.double(), expected, atol=0, rtol=1e-5)
    (value / 20 * -3).backward()
    for leaf, gradient in zip((hidden, weight, bias), gradients, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(leaf.grad.double(), gradient * -3 / 20, atol=1e-3, rtol=1e-4)


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


CPU = torch.device("cpu")
FULL, HALF = (3, 4, 9, 8), (3, 2, 9, 8)
CASES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": (FULL, {}),
    "causal": (FULL, {"is_causal": True, "scale": 0.5}),
    "grouped": (HALF, {"enable_gqa": True}),
    "masked": (FULL, {"attn_mask": torch.arange(9) < torch.tensor([9, 4, 1])[:, None, None, None]}),
    "biased": (FULL, {"attn_mask": torch.linspace(-3, 3, 81).reshape(1, 1, 9, 9)}),
}


@pytest.fixture(params=[torch.bfloat16, torch.float32], ids=["bfloat16", "float32"])
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.dtype:
    """The device's fast one, whatever this machine's is."""
    monkeypatch.setattr("recipes.loss.fast_precision", lambda _: request.param)
    return request.param


def kernel_gradients(inputs: list[Tensor], dtype: torch.dtype, options: dict[str, Any]) -> list[Tensor]:
    """The output of attention in this precision, and the gradients of its inputs for upstream ones from -1 to 1."""
    inputs = [x.detach().to(dtype).requires_grad_() for x in inputs]
    mask = options.get("attn_mask")
    if mask is not None and mask.dtype != torch.bool:  # the kernel wants an added one in the queries' precision
        options = {"attn_mask": mask.to(dtype)}
    output = F.scaled_dot_product_attention(*inputs, **options)
    upstream = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    return [output, *torch.autograd.grad(output, inputs, upstream)]


@pytest.mark.parametrize("case", CASES)
def test_output_and_gradients_are_those_of_the_kernel(case: str, precision: torch.dtype) -> None:
    shape, options = CASES[case]
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.randn(s, generator=generator).to(precision) for s in (FULL, shape, shape)]
    expected = kernel_gradients(inputs, torch.float64, options)
    with fast_pass(CPU):
        found = kernel_gradients(inputs, precision, options)
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == precision
        error = float((one.detach() - wanted.detach()).norm() / wanted.detach().norm())
        assert error < (8e-3 if precision == torch.bfloat16 else 1e-6)  # bfloat16 rounds by up to 2^-8


def test_only_bfloat16_on_a_cpu_goes_by_the_formula(precision: torch.dtype) -> None:
    x = torch.ones(FULL, dtype=precision, requires_grad=True)
    with fast_pass(CPU):
        inside = F.scaled_dot_product_attention(x, x, x)
        assert torch.is_autocast_enabled("cpu") == (precision == torch.bfloat16)
    outside = F.scaled_dot_product_attention(x, x, x)
    fused = ["ScaledDotProduct" in type(output.grad_fn).__name__ for output in (inside, outside)]
    assert fused == [precision == torch.float32, True]


def test_dropout_takes_whole_weights_and_keeps_their_mean(precision: torch.dtype) -> None:
    """Of 400 equal weights over equal values, 1 each, dropping a quarter leaves 1 on average, and not everywhere."""
    torch.manual_seed(0)
    x = torch.ones(2, 2, 400, 4, dtype=precision)
    with fast_pass(CPU):
        output = F.scaled_dot_product_attention(x, x, x, dropout_p=0.25).float()
    assert float(output.mean()) == pytest.approx(1, abs=0.01)
    assert 0.01 < float(output.std()) < 0.06  # sqrt(0.25 / 0.75 / 400) = 0.029
