"""Costs and savings that answer exercises of the book: counted by hand, or on the models themselves."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from viz_core.lessons.architectures.cheaper import (
    held,
    linear_attention,
    savings,
    tiled_attention,
    whole_attention,
    window_attention,
)
from viz_core.lessons.transformer.costs import TransformerSizes, additive_cost, depth_cost, dot_cost
from viz_core.lessons.vision_transformer.patches import picture_cost
from viz_core.models import TransformerDecoder, TransformerEncoder, ViT
from viz_core.models.encoder_decoder import EncoderDecoder


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.floats(0.1, 200))
def test_tiles_change_nothing_at_any_size_however_large_the_scores(
    blocks: int, width: int, d: int, size: float
) -> None:
    Q, K, V = (size * torch.randn(blocks * width, d, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(tiled_attention(Q, K, V, width), whole_attention(Q, K, V))


def test_a_window_as_wide_as_the_text_on_both_sides_is_whole_attention() -> None:
    Q, K, V = (torch.randn(5, 3, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(window_attention(Q, K, V, 10), whole_attention(Q, K, V))
    torch.testing.assert_close(window_attention(Q, K, V, 1), V)


def test_linear_attention_is_that_of_its_kernel() -> None:
    Q, K, V = (torch.randn(6, 3, dtype=torch.float64) for _ in range(3))
    kernel = (torch.nn.functional.elu(Q) + 1) @ (torch.nn.functional.elu(K) + 1).T
    torch.testing.assert_close(linear_attention(Q, K, V), kernel / kernel.sum(dim=1, keepdim=True) @ V)


def test_what_each_way_saves() -> None:
    found = savings(8, 4, 2)
    assert {name: (each.held, each.multiplications) for name, each in found.items()} == {
        "whole": (64, 512),
        "tiles": (4, 512),
        "window": (16, 128),
        "linear": (16, 256),
    }


def test_what_a_layer_holds() -> None:
    assert held(10, 8, 2) == {"parameters": 256, "keys": 160, "weights": 200, "path": 1}


def test_what_scores_take() -> None:
    dot, additive = dot_cost(5, 8, 2), additive_cost(5, 8, 2)
    assert (dot.multiplications, dot.largest, dot.parameters) == (200, 50, 0)
    assert (additive.multiplications, additive.largest, additive.parameters) == (200 + 2 * 5 * 8 * 4, 200, 2 * (32 + 4))


@pytest.mark.parametrize("depth", [1, 3])
def test_the_depths_cost_is_that_of_the_model(depth: int) -> None:
    sizes = TransformerSizes(num_hiddens=16, ffn_num_hiddens=24, source_words=11, target_words=13, tokens=7)
    names = {"num_hiddens": 16, "ffn_num_hiddens": 24, "num_heads": 2, "num_blks": depth, "dropout": 0.0}
    model = EncoderDecoder(TransformerEncoder(11, **names), TransformerDecoder(13, **names))
    tokens = torch.ones(1, 7, dtype=torch.long)
    parameters, multiplications = depth_cost(depth, sizes)
    assert parameters == sum(p.numel() for p in model.parameters())
    with FlopCounterMode(display=False) as counted, sdpa_kernel(SDPBackend.MATH):
        model(tokens, tokens)
    assert multiplications == 3 * counted.get_total_flops() // 2


@pytest.mark.parametrize("side", [8, 24])
def test_a_pictures_cost_is_that_of_the_model(side: int) -> None:
    model = ViT(side, 4, 16, 24, 2, 3, 0.0, 0.0, num_classes=10, num_channels=2).eval()
    found = picture_cost(side, 4, 16, 24, 3, 2)
    assert found.tokens == (side // 4) ** 2 + 1
    with FlopCounterMode(display=False) as counted, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model(torch.zeros(1, 2, side, side))
    assert found.multiplications == counted.get_total_flops() // 2 - 16 * 10  # the head, read once
    assert found.maps == 3 * 2 * found.tokens**2 * 16
