"""Scaled dot-product attention against the book's numbers and a loop over single queries."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from viz_core.attention import DotProductAttention
from viz_core.trace import name_site, record


def one_query(q: Tensor, keys: Tensor, values: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Output and weights of a single query, term by term in float64."""
    scores = [float(q.double() @ k.double()) / math.sqrt(len(q)) for k in keys[:length]]
    powers = [math.exp(s) for s in scores]
    weights = torch.tensor([p / sum(powers) for p in powers] + [0.0] * (len(keys) - length), dtype=torch.float64)
    return weights @ values.double(), weights


def test_alike_keys_give_the_mean_of_the_valid_values() -> None:
    """The book's example: equal keys, values 0 to 39, lengths 2 and 6."""
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    output = DotProductAttention().eval()(torch.randn(2, 1, 2), torch.ones(2, 10, 2), values, torch.tensor([2, 6]))
    torch.testing.assert_close(output, torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]]))


@pytest.mark.parametrize("per_query", [False, True])
def test_every_query_equals_its_own_sum(per_query: bool) -> None:
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.randn(2, 4, 6)
    lengths = torch.tensor([[1, 4, 2], [3, 3, 4]]) if per_query else torch.tensor([2, 4])
    with record() as trace:
        output = DotProductAttention()(queries, keys, values, lengths)
    weights = trace["attention.0"].weights()
    assert output.shape == (2, 3, 6)
    assert weights.shape == (2, 1, 3, 4)
    for b in range(2):
        for i in range(3):
            length = int(lengths[b, i] if per_query else lengths[b])
            expected, expected_weights = one_query(queries[b, i], keys[b], values[b], length)
            torch.testing.assert_close(output[b, i].double(), expected, atol=1e-6, rtol=0)
            torch.testing.assert_close(weights[b, 0, i].double(), expected_weights, atol=1e-6, rtol=0)


def test_without_lengths_every_key_counts() -> None:
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.randn(2, 4, 6)
    layer = DotProductAttention()
    torch.testing.assert_close(layer(queries, keys, values), layer(queries, keys, values, torch.tensor([4, 4])))
    expected, _ = one_query(queries[1, 2], keys[1], values[1], 4)
    torch.testing.assert_close(layer(queries, keys, values)[1, 2].double(), expected, atol=1e-6, rtol=0)


def test_length_zero_gives_zeros() -> None:
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 4, 5), torch.randn(2, 4, 6)
    output = DotProductAttention()(queries, keys, values, torch.tensor([0, 4]))
    assert torch.equal(output[0], torch.zeros(3, 6))
    assert output[1].abs().min() > 0


def test_dropout_acts_in_training_only_and_not_on_the_recorded_weights() -> None:
    queries, keys, values = torch.zeros(1, 1, 4), torch.randn(1, 1000, 4), torch.ones(1, 1000, 1)
    layer = DotProductAttention(dropout=0.5)
    name_site(layer, "here")
    outputs = [float(layer(queries, keys, values)) for _ in range(8)]
    assert len(set(outputs)) > 1
    assert outputs == pytest.approx([1.0] * 8, abs=0.15)
    with record() as trace:
        layer(queries, keys, values)
    torch.testing.assert_close(trace["here"].weights(), torch.full((1, 1, 1, 1000), 1e-3))
    torch.testing.assert_close(layer.eval()(queries, keys, values), torch.ones(1, 1, 1))


def test_has_no_parameters() -> None:
    assert DotProductAttention(0.1).state_dict() == {}


@pytest.mark.usefixtures("shapes_unchecked")
def test_refuses_what_does_not_fit() -> None:
    layer, X = DotProductAttention(), torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match="expected queries and keys of one width, got 4 and 5"):
        layer(X, torch.zeros(2, 3, 5), X)
    with pytest.raises(ValueError, match=r"expected one value for each key, got shapes .*3, 4\) and .*2, 4\)"):
        layer(X, X, torch.zeros(2, 2, 4))
    with pytest.raises(ValueError, match="expected queries and keys of one batch size, got 2 and 1"):
        layer(X, X[:1], X[:1])
    with pytest.raises(ValueError, match=r"valid_lens: expected shape \(2,\) or \(2, 3\), got \(1,\)"):
        layer(X, X, X, torch.tensor([3]))
