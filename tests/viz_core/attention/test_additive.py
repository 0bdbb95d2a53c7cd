"""Additive attention against numbers worked by hand, a loop over single pairs, and the book's example."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.attention import AdditiveAttention
from viz_core.trace import name_site, record


def with_weights(W_q: list[list[float]], W_k: list[list[float]], w_v: list[float]) -> AdditiveAttention:
    """A layer with exactly these weights, loaded by the book's names."""
    layer = AdditiveAttention(len(W_q[0]), len(W_k[0]), len(w_v))
    state = {"W_q.weight": torch.tensor(W_q), "W_k.weight": torch.tensor(W_k), "w_v.weight": torch.tensor([w_v])}
    layer.load_state_dict(state, strict=True)
    return layer.eval()


def one_query(layer: AdditiveAttention, q: Tensor, keys: Tensor, values: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Output and weights of a single query, pair by pair in float64."""
    W_q, W_k, w_v = (weight.detach().double() for weight in (layer.W_q.weight, layer.W_k.weight, layer.w_v.weight[0]))
    scores = [float(w_v @ torch.tanh(W_q @ q.double() + W_k @ k.double())) for k in keys[:length]]
    powers = [math.exp(score) for score in scores]
    weights = torch.tensor([p / sum(powers) for p in powers] + [0.0] * (len(keys) - length), dtype=torch.float64)
    return weights @ values.double(), weights


def test_worked_by_hand() -> None:
    """Widths 1 and 2: scores 2 tanh(1 + 0) = 1.523188 and 2 tanh(1 - 1) = 0, weights 0.821007 and 0.178993."""
    layer = with_weights([[1.0]], [[1.0, -1.0]], [2.0])
    queries, keys = torch.tensor([[[1.0]]]), torch.tensor([[[3.0, 3.0], [0.0, 1.0]]])
    score = layer.score(queries, layer.W_k(keys))
    torch.testing.assert_close(score, torch.tensor([[[1.523188, 0.0]]]))
    output = layer(queries, keys, torch.tensor([[[10.0], [20.0]]]))
    torch.testing.assert_close(output, torch.tensor([[[10 * 0.821007 + 20 * 0.178993]]]), atol=2e-5, rtol=0)


def test_the_books_example() -> None:
    """Queries (2, 1, 20), equal keys (2, 10, 2), lengths 2 and 6: means of the valid values, whatever the layer."""
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    layer = AdditiveAttention(query_size=20, key_size=2, num_hiddens=8, dropout=0.1).eval()
    with record() as trace:
        output = layer(torch.randn(2, 1, 20), torch.ones(2, 10, 2), values, torch.tensor([2, 6]))
    assert output.shape == (2, 1, 4)
    torch.testing.assert_close(output, torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]]))
    expected = torch.tensor([[[[0.5] * 2 + [0.0] * 8]], [[[1 / 6] * 6 + [0.0] * 4]]])
    torch.testing.assert_close(trace["attention.0"].weights(), expected)


@pytest.mark.parametrize("per_query", [False, True])
def test_every_query_equals_its_own_sum(per_query: bool) -> None:
    layer = AdditiveAttention(5, 3, 7).eval()
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 4, 3), torch.randn(2, 4, 6)
    lengths = torch.tensor([[1, 4, 2], [3, 3, 4]]) if per_query else torch.tensor([2, 4])
    with record() as trace:
        output = layer(queries, keys, values, lengths)
    weights = trace["attention.0"].weights()
    for b in range(2):
        for i in range(3):
            length = int(lengths[b, i] if per_query else lengths[b])
            expected, expected_weights = one_query(layer, queries[b, i], keys[b], values[b], length)
            torch.testing.assert_close(output[b, i].double(), expected, atol=1e-6, rtol=0, check_dtype=False)
            torch.testing.assert_close(weights[b, 0, i].double(), expected_weights, atol=1e-6, rtol=0)


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.integers(1, 6))
def test_any_widths_meet(query_size: int, key_size: int, num_hiddens: int, num_keys: int) -> None:
    layer = AdditiveAttention(query_size, key_size, num_hiddens).eval()
    queries, keys, values = (
        torch.randn(1, 2, query_size),
        torch.randn(1, num_keys, key_size),
        torch.randn(1, num_keys, 3),
    )
    output = layer(queries, keys, values)
    for i in range(2):
        expected, _ = one_query(layer, queries[0, i], keys[0], values[0], num_keys)
        torch.testing.assert_close(output[0, i].double(), expected, atol=2e-6, rtol=0)


def test_keys_projected_once_give_the_same_as_keys_projected_each_time() -> None:
    layer = AdditiveAttention(5, 3, 7).eval()
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 4, 3), torch.randn(2, 4, 6)
    lengths = torch.tensor([2, 4])
    projected = layer.W_k(keys)
    steps = [layer.pool(layer.weigh(queries[:, i : i + 1], projected, lengths), values) for i in range(3)]
    torch.testing.assert_close(torch.cat(steps, dim=1), layer(queries, keys, values, lengths))


def test_length_zero_gives_zeros_and_sends_back_no_gradient() -> None:
    layer = AdditiveAttention(5, 3, 7).eval()
    queries, keys, values = (torch.randn(2, 2, 5), torch.randn(2, 4, 3), torch.randn(2, 4, 6))
    queries.requires_grad_()
    output = layer(queries, keys, values, torch.tensor([[0, 4], [2, 0]]))
    assert torch.equal(output[0, 0], torch.zeros(6))
    assert torch.equal(output[1, 1], torch.zeros(6))
    (gradient,) = torch.autograd.grad(output.square().sum(), queries)
    assert torch.equal(gradient[0, 0], torch.zeros(5))
    assert gradient[0, 1].abs().min() > 0
    assert gradient.isfinite().all()


def test_what_is_masked_does_not_matter() -> None:
    layer = AdditiveAttention(5, 3, 7).eval()
    queries, keys, values = torch.randn(1, 2, 5), torch.randn(1, 4, 3), torch.randn(1, 4, 6)
    other_keys, other_values = keys.clone(), values.clone()
    other_keys[:, 2:], other_values[:, 2:] = 100.0, -100.0
    lengths = torch.tensor([2])
    assert torch.equal(layer(queries, keys, values, lengths), layer(queries, other_keys, other_values, lengths))


def test_dropout_acts_in_training_only_and_not_on_the_recorded_weights() -> None:
    layer = AdditiveAttention(2, 2, 4, dropout=0.5)
    name_site(layer, "here")
    queries, keys, values = torch.zeros(1, 1, 2), torch.zeros(1, 1000, 2), torch.ones(1, 1000, 1)
    outputs = {round(layer(queries, keys, values).item(), 6) for _ in range(8)}
    assert len(outputs) > 1
    with record() as trace:
        layer(queries, keys, values)
    torch.testing.assert_close(trace["here"].weights(), torch.full((1, 1, 1, 1000), 1e-3))
    torch.testing.assert_close(layer.eval()(queries, keys, values), torch.ones(1, 1, 1))


def test_parameters_have_the_books_names() -> None:
    state = AdditiveAttention(20, 2, 8).state_dict()
    assert {name: tuple(weight.shape) for name, weight in state.items()} == {
        "W_q.weight": (8, 20),
        "W_k.weight": (8, 2),
        "w_v.weight": (1, 8),
    }


@pytest.mark.usefixtures("shapes_unchecked")
def test_refuses_what_does_not_fit() -> None:
    layer, queries, keys = AdditiveAttention(5, 3, 7), torch.zeros(2, 1, 5), torch.zeros(2, 4, 3)
    with pytest.raises(ValueError, match=r"queries: expected shape \(batch, n, 5\), got \(2, 4, 3\)"):
        layer(keys, keys, keys)
    with pytest.raises(ValueError, match=r"keys: expected shape \(batch, n, 3\), got \(2, 1, 5\)"):
        layer(queries, queries, queries)
    with pytest.raises(ValueError, match=r"expected one value for each key, got shapes \(2, 4, 3\), \(2, 1, 5\)"):
        layer(queries, keys, queries)
    with pytest.raises(ValueError, match=r"valid_lens: expected shape \(2,\) or \(2, 1\), got \(3,\)"):
        layer(queries, keys, keys, torch.tensor([1, 2, 3]))
