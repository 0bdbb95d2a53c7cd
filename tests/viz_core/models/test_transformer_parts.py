"""The parts of a Transformer, by hand and against torch’s layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.viz_core.models.transformer_cases import FFN, HEADS, WIDTH, shaken
from tests.viz_core.models.transformer_parity import copy_attention, copy_rest
from viz_core.models import (
    AddNorm,
    PositionWiseFFN,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from viz_core.models.transformer_decoder import DecoderState


def test_add_norm_by_hand() -> None:
    layer = AddNorm(4, 0.5)
    shaken(layer)
    layer.eval()
    X, Y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    S = X + Y
    mean, std = S.mean(-1, keepdim=True), (S.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(layer(X, Y), (S - mean) / std * layer.ln.weight + layer.ln.bias)


def test_add_norm_drops_the_branch_and_not_the_residual() -> None:
    layer, X = AddNorm(4, 0.5), torch.randn(100, 4)
    torch.testing.assert_close(layer(X, torch.zeros(100, 4)), nn.functional.layer_norm(X, (4,)))
    assert not torch.equal(layer(X, X), layer(X, X))


def test_add_norm_takes_the_books_list_of_sizes() -> None:
    X = torch.randn(2, 3, 4)
    layer = AddNorm([3, 4], 0.5).eval()
    torch.testing.assert_close(layer(X, X), nn.functional.layer_norm(2 * X, (3, 4)))


@pytest.mark.usefixtures("shapes_unchecked")
def test_add_norm_refuses_two_shapes() -> None:
    with pytest.raises(ValueError, match=r"expected X and Y of one shape, got \(2, 4\) and \(1, 4\)"):
        AddNorm(4, 0.0)(torch.zeros(2, 4), torch.zeros(1, 4))


def test_feed_forward_by_hand() -> None:
    ffn = PositionWiseFFN(2, 1, 2)
    ffn.load_state_dict(
        {
            "dense1.weight": torch.tensor([[1.0, 2.0], [-1.0, 0.5]]),
            "dense1.bias": torch.tensor([0.5, -1.0]),
            "dense2.weight": torch.tensor([[2.0, -3.0]]),
            "dense2.bias": torch.tensor([0.25]),
        }
    )
    # relu(1 - 2 + 0.5, -1 - 0.5 - 1) = (0, 0); relu(-4 + 2 + 0.5, 4 + 0.5 - 1) = (0, 3.5); relu(3.5, 0) = (3.5, 0)
    X = torch.tensor([[[1.0, -1.0], [-4.0, 1.0], [1.0, 1.0]]])
    torch.testing.assert_close(ffn(X), torch.tensor([[[0.25], [-10.25], [7.25]]]))


def test_feed_forward_is_the_same_at_every_position() -> None:
    """The book's example: 4 inputs, 8 outputs; equal inputs give equal outputs."""
    output = PositionWiseFFN(4, 8, 4)(torch.ones(2, 3, 4))
    assert output.shape == (2, 3, 8)
    torch.testing.assert_close(output, output[:1, :1].expand(2, 3, 8))
    assert PositionWiseFFN(5, 7).dense1.in_features == 7


@pytest.mark.parametrize("use_bias", [False, True])
def test_encoder_block_equals_torchs_layer(use_bias: bool) -> None:
    block = TransformerEncoderBlock(WIDTH, FFN, HEADS, 0.1, use_bias)
    shaken(block)
    block.eval()
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, FFN, dropout=0.0, batch_first=True)
    with torch.no_grad():
        copy_attention(block.attention, theirs.self_attn)
    copy_rest(block, theirs, norms=2)
    X, lengths = torch.randn(3, 5, WIDTH), torch.tensor([5, 2, 4])
    padding = torch.arange(5) >= lengths[:, None]
    torch.testing.assert_close(block(X, lengths), theirs(X, src_key_padding_mask=padding), atol=2e-5, rtol=0)
    torch.testing.assert_close(block(X), theirs(X), atol=2e-5, rtol=0)


@pytest.mark.parametrize("use_bias", [False, True])
def test_decoder_block_equals_torchs_layer(use_bias: bool) -> None:
    block = TransformerDecoderBlock(WIDTH, FFN, HEADS, 0.1, use_bias=use_bias)
    shaken(block)
    block.eval()
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, FFN, dropout=0.0, batch_first=True)
    with torch.no_grad():
        copy_attention(block.attention1, theirs.self_attn)
        copy_attention(block.attention2, theirs.multihead_attn)
    copy_rest(block, theirs, norms=3)
    X, memory, lengths = torch.randn(2, 4, WIDTH), torch.randn(2, 6, WIDTH), torch.tensor([3, 6])
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = theirs(X, memory, tgt_mask=future, memory_key_padding_mask=torch.arange(6) >= lengths[:, None])
    output, _ = block(X, DecoderState(memory, lengths, (None,)))
    torch.testing.assert_close(output, expected, atol=2e-5, rtol=0)
