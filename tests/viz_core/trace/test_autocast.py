"""Under autocast: what is recorded are the numbers that were attended by, and reading is as exact as outside."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from viz_core.attention import MultiHeadAttention
from viz_core.positional import Rotary
from viz_core.trace import attend, attention_weights, record

HALF = [torch.bfloat16, torch.float16]


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("door", ["attend", "torch"])
def test_recorded_as_cast_and_read_anywhere(door: str, dtype: torch.dtype) -> None:
    """Queries and keys in float32, as rotary positions leave them, beside values that are cast already."""
    queries, keys, values = drawn()
    values = values.to(dtype)
    with torch.autocast("cpu", dtype=dtype):
        expected = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        with record(torch_calls=door == "torch") as trace:
            if door == "torch":
                output = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            else:
                output = attend(queries, keys, values, causal=True)
        call = trace["attention.0"]
        within, thumbnails = call.weights(), call.overview(5)
    assert output.dtype == dtype
    assert torch.equal(output, expected)
    assert torch.equal(within, attention_weights(queries.to(dtype), keys.to(dtype), causal=True))
    assert torch.equal(call.weights(), within)
    assert torch.equal(thumbnails, within)


def test_gradients_go_through_the_cast() -> None:
    queries, keys, values = (X.requires_grad_() for X in drawn())
    with torch.autocast("cpu", dtype=torch.bfloat16), record():
        found = torch.autograd.grad(attend(queries, keys, values).sum(), [queries, keys, values])
        fused = F.scaled_dot_product_attention(queries, keys, values)
    for ours, theirs in zip(found, torch.autograd.grad(fused.sum(), [queries, keys, values]), strict=True):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, theirs)


def test_our_own_layer_with_rotary_positions() -> None:
    layer, X = MultiHeadAttention(32, 4, positions=Rotary()).eval(), torch.randn(2, 5, 32)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16), record() as trace:
        output = layer(X, X, X)
    torch.testing.assert_close(output.float(), layer(X, X, X), atol=0.02, rtol=0.05)
    torch.testing.assert_close(trace["attention.0"].weights().sum(dim=-1), torch.ones(2, 4, 5))
