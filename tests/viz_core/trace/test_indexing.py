"""One rule for every index of a map: a number drops its axis, slices and ranges keep it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from viz_core.trace import AttentionCall, attend, record


@pytest.fixture
def call() -> AttentionCall:
    q, k = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4)
    with record() as trace:
        attend(q, k, k)
    return trace["attention.0"]


@pytest.mark.parametrize("number", [int, np.int64, np.uint8, torch.tensor], ids=["int", "int64", "uint8", "tensor"])
def test_a_number_drops_its_axis(call: AttentionCall, number: type) -> None:
    whole = call.weights()
    assert torch.equal(call.weights(head=number(1)), whole[:, 1])
    assert torch.equal(call.weights(queries=number(2)), whole[:, :, 2])
    assert torch.equal(call.weights(keys=number(2)), whole[:, :, :, 2])
    assert torch.equal(call.weights(number(0), number(4), number(5)), whole[:, 0, 4, 5])


def test_from_the_end(call: AttentionCall) -> None:
    whole = call.weights()
    assert torch.equal(call.weights(-1, -2, -3), whole[:, -1, -2, -3])
    assert torch.equal(call.weights(queries=slice(-2, None)), whole[:, :, -2:])


def test_slices_and_ranges_keep_it(call: AttentionCall) -> None:
    whole = call.weights()
    assert torch.equal(call.weights(slice(1, 3), range(1, 5, 2), range(0, 6, 3)), whole[:, 1:3, 1:5:2, 0:6:3])
    assert torch.equal(call.weights(queries=slice(None, None, 2)), whole[:, :, ::2])
    assert torch.equal(call.weights(slice(0, 3, 2), keys=range(1, 6, 2)), whole[:, ::2, :, 1::2])
    assert call.weights(range(1, 2), slice(2, 2)).shape == (2, 1, 0, 6)
    assert call.weights(keys=range(0)).shape == (2, 3, 5, 0)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ({"head": 3}, "head: expected 0 to 2, got 3"),
        ({"head": -4}, "head: expected 0 to 2, got -4"),
        ({"queries": 5}, "queries: expected 0 to 4, got 5"),
        ({"keys": np.int64(6)}, "keys: expected 0 to 5, got 6"),
        ({"keys": range(3, 8)}, "keys: expected places from 0 to 5"),
        ({"queries": slice(None, None, -1)}, "queries: expected places in order, got step -1"),
        ({"head": slice(2, 0, -1)}, "head: expected places in order, got step -1"),
        ({"head": torch.tensor(1.0)}, "head: expected a number, a slice or a range, got Tensor"),
        ({"keys": slice(0.5)}, "keys: expected a slice of whole numbers"),
        ({"keys": slice(0, 3, 0)}, "keys: expected places in order, got step 0"),
        ({"queries": 1.0}, "queries: expected a number, a slice or a range, got float"),
        ({"queries": True}, "queries: expected a number, a slice or a range, got bool"),
        ({"keys": [0, 1]}, "keys: expected a number, a slice or a range, got list"),
    ],
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_indices_are_refused(call: AttentionCall, indices: dict[str, object], message: str) -> None:
    with pytest.raises(IndexError, match=message):
        call.weights(**indices)
