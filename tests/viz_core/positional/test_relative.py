"""Relative positions along a line: the skew, the clipping and the scores, each against loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.positional import (
    RelativePositionEmbedding1d,
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


def test_only_the_table_is_saved_and_loads_strictly() -> None:
    embedding = RelativePositionEmbedding1d(4, 3, num_heads=2, max_distance=1)
    assert {name: tuple(t.shape) for name, t in embedding.state_dict().items()} == {"weight": (2, 3, 3)}
    other = RelativePositionEmbedding1d(9, 3, num_heads=2, max_distance=1)
    other.load_state_dict(embedding.state_dict(), strict=True)
    q = torch.randn(1, 2, 9, 3)
    torch.testing.assert_close(other(q)[..., :4, :4], embedding(q[..., :4, :]))


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
