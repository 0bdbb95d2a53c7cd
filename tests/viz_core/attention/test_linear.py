"""Linear attention: three forms that agree, numbers by hand, padding, half precision, and transformers' own rule."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.qwen3_next.modeling_qwen3_next import (
    torch_chunk_gated_delta_rule,
    torch_recurrent_gated_delta_rule,
)

from viz_core.attention.linear import (
    LinearOperator,
    delta_rule,
    elu_features,
    gated_decay,
    gated_delta_rule,
    linear_attention,
    retention,
    retention_decay,
)

Rule = Callable[..., LinearOperator]

RULES: dict[str, Rule] = {
    "linear_attention": lambda q, k, _g, _b, **more: linear_attention(q, k, **more),
    "sum": lambda q, k, _g, _b, **more: linear_attention(q, k, normalise=False, **more),
    "retention": lambda q, k, _g, _b, **more: retention(q, k, **more),
    "gated_decay": lambda q, k, g, b, **more: gated_decay(q, k, g, b, **more),
    "delta_rule": lambda q, k, _g, b, **more: delta_rule(q, k, b, **more),
    "gated_delta_rule": gated_delta_rule,
}
rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def inputs(n: int, seed: int = 0, dtype: torch.dtype = torch.float64, heads: int = 2) -> tuple[Tensor, ...]:
    """Queries, keys of length 1, log decay, strength and values: batch 2, d 4, v 3."""
    draw = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2, heads, n, d, generator=draw, dtype=torch.float64) for d in (4, 4, 3))
    g, b = (torch.rand(2, heads, n, generator=draw, dtype=torch.float64) for _ in range(2))
    return tuple(x.to(dtype) for x in (q, torch.nn.functional.normalize(k, dim=-1), -g, b, v))


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[None, None, :, None]


def gates(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[None, None]


@rules
@settings(max_examples=30)
@given(n=st.integers(1, 12), size=st.integers(1, 13), seed=st.integers(0, 1000))
def test_the_three_forms_agree(rule: Rule, n: int, size: int, seed: int) -> None:
    *given_, values = inputs(n, seed)
    operator = rule(*given_)
    expected = operator.recurrent(values)
    torch.testing.assert_close(operator.chunked(values, size), expected)
    torch.testing.assert_close(operator.map() @ values, expected)
    torch.testing.assert_close(operator.map().triu(1), torch.zeros(2, 2, n, n, dtype=torch.float64))


@rules
def test_the_state_and_a_query_give_the_output(rule: Rule) -> None:
    *given_, values = inputs(6)
    operator = rule(*given_)
    output = torch.einsum("bhnd,bhndv->bhnv", operator.queries, operator.states(values))
    if operator.normalises:
        output = output / (operator.queries * operator.keys.cumsum(dim=2)).sum(dim=-1, keepdim=True)
    torch.testing.assert_close(output, operator.recurrent(values))


@rules
def test_padding_changes_no_token(rule: Rule) -> None:
    """On either side: the tokens' outputs are those of the text alone."""
    *given_, values = inputs(6)
    alone = rule(*(x[:, :, :4] for x in given_)).recurrent(values[:, :, :4])
    right = rule(*given_, valid_lens=torch.tensor([4, 4]))
    torch.testing.assert_close(right.recurrent(values)[:, :, :4], alone)
    assert (right.map()[..., 4:] == 0).all()
    torch.testing.assert_close(right.chunked(values, 4), right.recurrent(values))
    order = [4, 5, 0, 1, 2, 3]
    left = rule(*(x[:, :, order] for x in given_)).masked(torch.tensor([[False] * 2 + [True] * 4] * 2))
    torch.testing.assert_close(left.recurrent(values[:, :, order])[:, :, 2:], alone)
    torch.testing.assert_close(left.map() @ values[:, :, order], left.chunked(values[:, :, order], 3))


@rules
def test_no_valid_token_gives_zeros(rule: Rule) -> None:
    *given_, values = inputs(3)
    operator = rule(*given_, valid_lens=torch.tensor([0, 3]))
    assert (operator.recurrent(values)[0] == 0).all()
    assert (operator.map()[0] == 0).all()
    assert operator.recurrent(values)[1].any()


@rules
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_once(rule: Rule, dtype: torch.dtype) -> None:
    *given_, values = inputs(40, dtype=dtype)
    operator = rule(*given_)
    exact = rule(*(x.double() for x in given_)).recurrent(values.double())
    bound = 2 * torch.finfo(dtype).eps
    for output in (operator.recurrent(values), operator.chunked(values, 16)):
        assert output.dtype == dtype
        assert operator.map().dtype == torch.float32
        feature_rounding = bound * 8 * float(exact.abs().max())  # elu + 1 is rounded once in the type
        torch.testing.assert_close(output.double(), exact, rtol=bound, atol=feature_rounding)


def test_sums_by_hand() -> None:
    """One dimension: phi(0) = 1, phi(1) = 2; weights 1, 2 and 2 of a sum of 5 in the last row."""
    operator = linear_attention(column(0, 0, 1), column(0, 1, 1))
    expected = torch.tensor([[1, 0, 0], [1 / 3, 2 / 3, 0], [0.2, 0.4, 0.4]], dtype=torch.float64)
    torch.testing.assert_close(operator.map()[0, 0], expected)
    assert operator.recurrent(column(5, 10, 20)).flatten().tolist() == pytest.approx([5, 25 / 3, 13])
    assert elu_features(column(0, 2, -1)).flatten().tolist() == pytest.approx([1, 3, 0.36787944])


def test_decay_by_hand() -> None:
    operator = retention(column(1, 1, 2), column(1, 1, 1), torch.tensor([0.5], dtype=torch.float64))
    expected = torch.tensor([[1, 0, 0], [0.5, 1, 0], [0.5, 1, 2]], dtype=torch.float64)
    torch.testing.assert_close(operator.map()[0, 0], expected)
    assert retention_decay(3).tolist() == [31 / 32, 63 / 64, 127 / 128]


def test_a_gate_forgets_everything_before_it() -> None:
    """Decays 1, 1/2, 1/4: the third row weighs its tokens 1/8, 1/4 and 1, times strengths 1, 2, 1."""
    operator = gated_decay(column(1, 1, 1), column(1, 1, 1), gates(1, 0.5, 0.25).log(), gates(1, 2, 1))
    torch.testing.assert_close(operator.map()[0, 0, 2].tolist(), [0.125, 0.5, 1.0])


def test_the_delta_rule_replaces_and_a_sum_adds() -> None:
    """The same key twice, with 3 and then 5: the rule returns 5, the sum 8; half strength goes half the way, to 4."""
    ones, values = column(1, 1), column(3, 5)
    assert delta_rule(ones, ones, gates(1, 1)).recurrent(values).flatten().tolist() == [3, 5]
    assert delta_rule(ones, ones, gates(1, 0.5)).recurrent(values).flatten().tolist() == [3, 4]
    assert LinearOperator(ones, ones).recurrent(values).flatten().tolist() == [3, 8]
    torch.testing.assert_close(delta_rule(ones, ones, gates(1, 0.5)).map()[0, 0, 1].tolist(), [0.5, 0.5])


@pytest.mark.parametrize("theirs", [torch_recurrent_gated_delta_rule, torch_chunk_gated_delta_rule])
def test_the_gated_delta_rule_is_that_of_transformers(theirs: Callable[..., Any]) -> None:
    q, k, g, b, v = inputs(150, dtype=torch.float32)
    operator = gated_delta_rule(q / q.shape[-1] ** 0.5, k, g, b)
    expected = theirs(*(x.transpose(1, 2) for x in (q, k, v, g, b)))[0].transpose(1, 2)
    for output in (operator.recurrent(v), operator.chunked(v), operator.map() @ v):
        torch.testing.assert_close(output, expected, rtol=1e-5, atol=5e-6)  # sums of 150 tokens in float32


@rules
def test_gradients_of_recurrence_and_chunks_agree(rule: Rule) -> None:
    *given_, values = inputs(7)
    leaves = [x.requires_grad_() for x in given_]
    one = torch.autograd.grad(rule(*leaves).recurrent(values).square().sum(), leaves, allow_unused=True)
    other = torch.autograd.grad(rule(*leaves).chunked(values, 3).square().sum(), leaves, allow_unused=True)
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            torch.testing.assert_close(a, b)
