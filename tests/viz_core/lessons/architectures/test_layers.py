"""The real layers against plain loops over tokens."""

from __future__ import annotations

import pytest
import torch
from einops import rearrange
from torch import Tensor

from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes
from viz_core.lessons.architectures.layers import (
    Convolution,
    Recurrent,
    RestrictedSelfAttention,
    SelfAttention,
    build_layer,
    window_mask,
)


def restricted_by_loop(layer: RestrictedSelfAttention, X: Tensor) -> Tensor:
    """Each query by itself over its last r keys."""
    inner = layer.attention
    q, k, v = (
        rearrange(linear(X), "b n (h w) -> b h n w", h=inner.num_heads) for linear in (inner.W_q, inner.W_k, inner.W_v)
    )
    rows = []
    for t in range(X.shape[1]):
        visible = slice(max(0, t - layer.window + 1), t + 1)
        weights = torch.softmax(q[:, :, t : t + 1] @ k[:, :, visible].mT / q.shape[-1] ** 0.5, dim=-1)
        rows.append(weights @ v[:, :, visible])
    return inner.W_o(rearrange(torch.cat(rows, dim=2), "b h n w -> b n (h w)"))


@pytest.mark.parametrize("n", [1, 3, 4, 5, 12, 13])
@pytest.mark.parametrize("window", [1, 4, 5, 40])
@pytest.mark.parametrize("heads", [1, 2])
def test_restricted_attention_is_attention_over_the_last_r(n: int, window: int, heads: int) -> None:
    layer, X = RestrictedSelfAttention(8, window, heads).double(), torch.randn(2, n, 8, dtype=torch.float64)
    torch.testing.assert_close(layer(X), restricted_by_loop(layer, X), atol=1e-12, rtol=0)


def test_the_window_mask_by_hand() -> None:
    first, second = window_mask(2, 2).int().tolist()
    assert first == [[0, 0, 1, 0], [0, 0, 1, 1]]
    assert second == [[0, 1, 1, 0], [0, 0, 1, 1]]


@pytest.mark.parametrize("dilation", [1, 3])
def test_convolution_sums_a_token_and_those_before_it(dilation: int) -> None:
    layer, X = Convolution(4, 3, dilation).double(), torch.randn(1, 10, 4, dtype=torch.float64)
    output = layer(X)[0]
    for t in range(10):
        wanted = layer.conv.bias.clone()
        for j in range(3):
            place = t - (2 - j) * dilation
            if place >= 0:
                wanted = wanted + layer.conv.weight[:, :, j] @ X[0, place]
        torch.testing.assert_close(output[t], wanted, atol=1e-12, rtol=0)


def test_recurrence_steps_from_state_to_state() -> None:
    layer, X = Recurrent(4), torch.randn(1, 6, 4)
    state, rnn = torch.zeros(4), layer.rnn
    for t, output in enumerate(layer(X)[0]):
        state = torch.tanh(rnn.weight_ih_l0 @ X[0, t] + rnn.bias_ih_l0 + rnn.weight_hh_l0 @ state + rnn.bias_hh_l0)
        torch.testing.assert_close(output, state, atol=1e-6, rtol=0)


def test_every_name_builds_its_layer() -> None:
    kinds = [type(build_layer(name, LayerSizes(5, 8, 3, 2), depth=2)) for name in ARCHITECTURES]
    assert kinds == [SelfAttention, Recurrent, Convolution, Convolution, RestrictedSelfAttention]
    assert build_layer("dilated", LayerSizes(5, 8, 3, 2), depth=2).conv.dilation == (9,)
    assert build_layer("attention", LayerSizes(5, 8, 3, 2), num_heads=4).attention.num_heads == 4
