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


def test_only_the_rows_that_were_used_learn() -> None:
    embedding = LearnedPositionalEmbedding(5, 2)
    embedding(torch.zeros(4, 2, 2), offset=1).sum().backward()
    expected = torch.tensor([0.0, 4.0, 4.0, 0.0, 0.0])[:, None].expand(5, 2)
    assert torch.equal(embedding.weight.grad, expected)


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


@pytest.mark.parametrize(("n", "d", "heads"), [(1, 1, 1), (4, 3, 2), (5, 8, 3)])
def test_absolute_scores_by_loops(n: int, d: int, heads: int) -> None:
    embedding = AbsolutePositionEmbedding1d(n, d).double()
    q = torch.randn(2, heads, n, d, dtype=torch.float64)
    scores = embedding(q)
    assert scores.shape == (2, heads, n, n)
    for b in range(2):
        for h in range(heads):
            for i in range(n):
                for j in range(n):
                    expected = (q[b, h, i] * embedding.weight[j]).sum()
                    torch.testing.assert_close(scores[b, h, i, j], expected, atol=1e-13, rtol=0)


def test_absolute_gradients() -> None:
    embedding = AbsolutePositionEmbedding1d(3, 2).double()
    q = torch.randn(1, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    assert list(embedding.state_dict()) == ["weight"]
    assert torch.autograd.gradcheck(
        lambda q, weight: torch.func.functional_call(embedding, {"weight": weight}, (q,)), (q, embedding.weight)
    )


@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 4, 3), (1, 2, 4, 1)])
def test_absolute_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"q: expected shape \(batch, heads, 4, 4\), got "):
        AbsolutePositionEmbedding1d(4, 4)(torch.zeros(shape))


@pytest.mark.usefixtures("shapes_unchecked")
def test_absolute_refuses_other_ranks() -> None:
    with pytest.raises(ValueError, match=r"q: expected shape \(batch, heads, 4, 4\), got \(4, 4\)"):
        AbsolutePositionEmbedding1d(4, 4)(torch.zeros(4, 4))


@pytest.mark.parametrize("module", [LearnedPositionalEmbedding, AbsolutePositionEmbedding1d])
def test_sizes_below_one_are_refused(module: type[nn.Module]) -> None:
    for sizes in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match="expected at least 1, got 0"):
            module(*sizes)
