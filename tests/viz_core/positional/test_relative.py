"""Learned vectors: absolute, relative along a line, and on a grid, each against loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    LearnedPositionalEmbedding,
    RelativePositionEmbedding1d,
    RelativePositionEmbedding2d,
    clipped_offsets,
    relative_to_absolute,
    relative_to_absolute_steps,
)
from viz_core.trace import attend, record


def test_steps_by_hand() -> None:
    steps = relative_to_absolute_steps(torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    assert steps.padded.tolist() == [[1, 2, 3, 0], [4, 5, 6, 0]]
    assert steps.flattened.tolist() == [1, 2, 3, 0, 4, 5, 6, 0]
    assert steps.extended.tolist() == [1, 2, 3, 0, 4, 5, 6, 0, 0]
    assert steps.reshaped.tolist() == [[1, 2, 3], [0, 4, 5], [6, 0, 0]]
    assert steps.result.tolist() == [[2, 3], [4, 5]]
    assert steps._fields == ("padded", "flattened", "extended", "reshaped", "result")


@settings(max_examples=30)
@given(batch=st.integers(1, 3), heads=st.integers(1, 3), n=st.integers(1, 9), seed=st.integers(0, 99))
def test_skew_by_loops(batch: int, heads: int, n: int, seed: int) -> None:
    scores = torch.randn(batch, heads, n, 2 * n - 1, generator=torch.Generator().manual_seed(seed))
    before = scores.clone()
    absolute = relative_to_absolute(scores)
    assert absolute.shape == (batch, heads, n, n)
    for i in range(n):
        for j in range(n):
            assert torch.equal(absolute[..., i, j], scores[..., i, j - i + n - 1])
    assert torch.equal(scores, before)


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 6), (1, 1, 4, 4), (0, 0), (2, 0, 1)])
def test_skew_refuses_another_number_of_offsets(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"scores: expected \(\.\.\., n, 2n - 1\)"):
        relative_to_absolute(torch.zeros(shape))


@settings(max_examples=30)
@given(n=st.integers(1, 9), k=st.integers(0, 12))
def test_clipping_by_loops(n: int, k: int) -> None:
    assert clipped_offsets(n, k).tolist() == [[min(max(j - i, -k), k) + k for j in range(n)] for i in range(n)]


def test_every_head_has_its_own_table_when_asked() -> None:
    shared, own = RelativePositionEmbedding1d(4, 3), RelativePositionEmbedding1d(4, 3, num_heads=2)
    q = torch.randn(1, 1, 4, 3).expand(1, 2, 4, 3)
    assert torch.equal(shared(q)[:, 0], shared(q)[:, 1])
    before = own(q)
    with torch.no_grad():
        own.weight[1] += 1
    after = own(q)
    assert torch.equal(after[:, 0], before[:, 0])
    torch.testing.assert_close(after[:, 1], before[:, 1] + q[:, 1].sum(dim=-1, keepdim=True))


def test_shaw_equation_5_through_the_door_of_all_attention() -> None:
    n, d = 5, 4
    torch.manual_seed(0)
    embedding = RelativePositionEmbedding1d(n, d, max_distance=2)
    q, k, v = torch.randn(3, 1, 2, n, d)
    with torch.no_grad(), record() as trace:
        attend(q, k, v, bias=embedding(q) / d**0.5)
        keys = k[:, :, None] + embedding.weight[clipped_offsets(n, 2)]
        expected = torch.softmax((q[:, :, :, None] * keys).sum(dim=-1) / d**0.5, dim=-1)
    torch.testing.assert_close(trace["attention.0"].weights(), expected, atol=1e-6, rtol=0)


def test_refuses_queries_that_do_not_fit() -> None:
    shared, own = RelativePositionEmbedding1d(4, 3), RelativePositionEmbedding1d(4, 3, num_heads=2)
    for shape in ((1, 2, 3, 3), (1, 2, 4, 1)):
        with pytest.raises(ValueError, match=r"q: expected shape \(batch, heads, 4, 3\), got \(1, 2, "):
            shared(torch.zeros(shape))
    for heads in (1, 3):
        with pytest.raises(ValueError, match=r"q: expected shape \(batch, 2, 4, 3\)"):
            own(torch.zeros(1, heads, 4, 3))


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


@settings(max_examples=40)
@given(
    height=st.integers(1, 4),
    width=st.integers(1, 4),
    d=st.integers(1, 4),
    heads=st.integers(1, 3),
    own_tables=st.booleans(),
    seed=st.integers(0, 99),
)
def test_scores_by_loops(height: int, width: int, d: int, heads: int, own_tables: bool, seed: int) -> None:
    torch.manual_seed(seed)
    embedding = RelativePositionEmbedding2d(height, width, d, heads if own_tables else None).double()
    tokens = height * width
    q = torch.randn(2, heads, tokens, d, dtype=torch.float64)
    expected = torch.empty(2, heads, tokens, tokens, dtype=torch.float64)
    for h in range(heads):
        rows = embedding.rows.weight[h] if own_tables else embedding.rows.weight
        columns = embedding.columns.weight[h] if own_tables else embedding.columns.weight
        for i in range(tokens):
            for j in range(tokens):
                down = j // width - i // width
                across = j % width - i % width
                expected[:, h, i, j] = q[:, h, i] @ (rows[down + height - 1] + columns[across + width - 1])
    torch.testing.assert_close(embedding(q), expected, atol=1e-13, rtol=0)


def test_two_by_three_grid_by_hand() -> None:
    embedding = RelativePositionEmbedding2d(2, 3, head_dim=1)
    with torch.no_grad():
        embedding.rows.weight[:, 0] = torch.tensor([-10.0, 0, 10])
        embedding.columns.weight[:, 0] = torch.tensor([-2.0, -1, 0, 1, 2])
    scores = embedding(torch.ones(1, 1, 6, 1))[0, 0]
    assert scores[0].tolist() == [0, 1, 2, 10, 11, 12]
    assert scores[4].tolist() == [-11, -10, -9, -1, 0, 1]


def test_a_grid_refuses_queries_that_do_not_fit() -> None:
    embedding = RelativePositionEmbedding2d(2, 3, 4, num_heads=2)
    for shape in ((1, 2, 5, 4), (1, 2, 6, 3), (1, 1, 6, 4)):
        with pytest.raises(ValueError, match=r"q: expected shape \(batch, 2, 6, 4\), got \(1, "):
            embedding(torch.zeros(shape))


@pytest.mark.parametrize(
    ("sizes", "name"),
    [((0, 3, 4), "height"), ((3, 0, 4), "width"), ((3, 3, 0), "head_dim"), ((3, 3, 4, 0), "num_heads")],
)
def test_refuses_impossible_sizes(sizes: tuple[int, ...], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected at least 1, got 0"):
        RelativePositionEmbedding2d(*sizes)
