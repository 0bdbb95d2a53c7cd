"""Learned absolute positions, at the input and inside the attention."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from viz_core.positional import AbsolutePositionEmbedding1d, LearnedPositionalEmbedding


@pytest.mark.parametrize(("n", "offset"), [(1, 0), (1, 6), (5, 0), (5, 2), (7, 0)])
def test_adds_one_row_to_each_position(n: int, offset: int) -> None:
    embedding = LearnedPositionalEmbedding(7, 3)
    X = torch.randn(2, n, 3)
    out = embedding(X, offset)
    for b in range(2):
        for i in range(n):
            assert torch.equal(out[b, i], X[b, i] + embedding.weight[offset + i])


def test_the_positions_of_a_bert_load_strictly() -> None:
    trained = nn.Embedding(7, 3)
    embedding = LearnedPositionalEmbedding(7, 3)
    embedding.load_state_dict(trained.state_dict(), strict=True)
    assert torch.equal(embedding(torch.zeros(1, 7, 3))[0], trained(torch.arange(7)))


def test_start_is_small() -> None:
    torch.manual_seed(0)
    assert LearnedPositionalEmbedding(300, 300).weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert AbsolutePositionEmbedding1d(2000, 64).weight.std().item() == pytest.approx(1 / 8, rel=0.02)


@pytest.mark.parametrize(
    ("width", "n", "offset", "message"),
    [
        (3, 8, 0, "at most max_len=7 positions, got 8"),
        (3, 2, 6, "at most max_len=7 positions, got 8"),
        (3, 1, -1, "offset: expected at least 0, got -1"),
        (1, 2, 0, r"X: expected width 3, got shape \(2, 2, 1\)"),
    ],
)
def test_embedding_refuses(width: int, n: int, offset: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LearnedPositionalEmbedding(7, 3)(torch.zeros(2, n, width), offset)


@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 4, 3), (1, 2, 4, 1)])
def test_absolute_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"q: expected shape \(batch, heads, 4, 4\), got "):
        AbsolutePositionEmbedding1d(4, 4)(torch.zeros(shape))
