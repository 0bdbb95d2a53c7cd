"""What crosses between processes is what was sent, tensors of every kind."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch import nn

from serving.runners.worker import pack

BASE = torch.arange(24.0).reshape(2, 3, 4)
TENSORS = {
    "float32": BASE,
    "float64": BASE.double(),
    "float16": BASE.half(),
    "bfloat16": BASE.bfloat16(),
    "int64": BASE.long(),
    "uint8": BASE.to(torch.uint8),
    "bool": BASE > 5,
    "not finite": torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0]),
    "a number": torch.tensor(3.5),
    "empty": torch.zeros(0, 4),
    "every other column": BASE[..., ::2],
    "transposed": BASE.transpose(0, 2),
    "expanded": torch.ones(1, 4).expand(3, 4),
    "complex": torch.complex(BASE, -BASE),
    "conjugated": torch.complex(BASE, -BASE).conj(),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_comes_back(name: str) -> None:
    sent = TENSORS[name]
    found = pickle.loads(pack({"maps": [sent, 7], "more": (sent,)}))
    for came in (found["maps"][0], found["more"][0]):
        assert came.dtype == sent.dtype
        torch.testing.assert_close(came, sent.resolve_conj(), rtol=0, atol=0, equal_nan=True)
    assert found["maps"][1] == 7


def test_a_tensor_can_be_written_to_a_parameter_stays_one_and_a_view_is_small() -> None:
    found = pickle.loads(pack(BASE))
    found += 1
    assert torch.equal(found, BASE + 1)
    assert isinstance(pickle.loads(pack(nn.Parameter(BASE))), nn.Parameter)
    assert len(pack(torch.zeros(1000, 1000)[0])) < 5_000
