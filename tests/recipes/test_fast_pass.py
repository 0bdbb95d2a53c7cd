"""A training pass in bfloat16: attention and its gradients by the formula, as near to the truth as torch's kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from recipes.fast_pass import fast_pass

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
    monkeypatch.setattr("recipes.fast_pass.fast_precision", lambda _: request.param)
    return request.param


def with_gradients(inputs: list[Tensor], dtype: torch.dtype, options: dict[str, Any]) -> list[Tensor]:
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
    expected = with_gradients(inputs, torch.float64, options)
    with fast_pass(CPU):
        found = with_gradients(inputs, precision, options)
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
