"""Learned vectors and biases: loops, the papers' numbers and other implementations."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from viz_core.positional import (
    LearnedPositionalEmbedding,
    RelativePositionEmbedding2d,
    T5RelativeBias,
    alibi_slopes,
    clipped_offsets,
    relative_to_absolute,
    relative_to_absolute_steps,
    t5_relative_position_bucket,
)
from viz_core.positional.kerple import KerpleLog


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


@settings(max_examples=30)
@given(n=st.integers(1, 9), k=st.integers(0, 12))
def test_clipping_by_loops(n: int, k: int) -> None:
    assert clipped_offsets(n, k).tolist() == [[min(max(j - i, -k), k) + k for j in range(n)] for i in range(n)]


@pytest.mark.parametrize(("n", "offset"), [(1, 0), (1, 6), (5, 0), (5, 2), (7, 0)])
def test_adds_one_row_to_each_position(n: int, offset: int) -> None:
    embedding = LearnedPositionalEmbedding(7, 3)
    X = torch.randn(2, n, 3)
    out = embedding(X, offset)
    for b in range(2):
        for i in range(n):
            assert torch.equal(out[b, i], X[b, i] + embedding.weight[offset + i])


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


def test_published_slopes() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(16).tolist() == pytest.approx([2 ** (-i / 2) for i in range(1, 17)], rel=1e-15)
    assert alibi_slopes(1).tolist() == [2.0**-8]


@pytest.mark.parametrize("num_heads", [1, 2, 3, 5, 7, 8, 12, 20, 25, 32, 71, 112])
def test_slopes_are_those_of_bloom(num_heads: int) -> None:
    theirs = build_alibi_tensor(torch.ones(1, 2), num_heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(alibi_slopes(num_heads).float(), theirs, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("num_queries", "num_keys"), [(5, 5), (2, 7), (1, 1)])
def test_the_penalty_by_loops(num_queries: int, num_keys: int) -> None:
    scheme = KerpleLog(3)
    with torch.no_grad():
        bias = scheme.bias(torch.zeros(2, 3, num_queries, 4), num_keys)
    assert bias is not None
    assert bias.shape == (1, 3, num_queries, num_keys)
    for h in range(3):
        r1, r2 = (math.exp(log.tolist()[h]) for log in (scheme.log_r1, scheme.log_r2))
        for i in range(num_queries):
            for j in range(num_keys):
                distance = abs(j - (num_keys - num_queries + i))
                assert float(bias[0, h, i, j]) == pytest.approx(-r1 * math.log(1 + r2 * distance), abs=1e-5)


def test_it_starts_in_the_authors_range() -> None:
    scheme = KerpleLog(1000)
    assert 0.0099 <= scheme.log_r1.exp().min() < scheme.log_r1.exp().max() <= 2.0001
    assert 0.0099 <= scheme.log_r2.exp().min() < scheme.log_r2.exp().max() <= 1.0001


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (64, 128), (32, 256), (20, 40), (33, 100), (4, 3), (5, 3), (128, 65)]
)
def test_buckets_are_those_of_transformers(bidirectional: bool, num_buckets: int, max_distance: int) -> None:
    offsets = torch.cat([torch.arange(-400, 401), torch.tensor([-(10**6), 10**6])])
    theirs = T5Attention._relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    ours = t5_relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    assert torch.equal(ours, theirs)
    assert t5_relative_position_bucket(offsets.int(), bidirectional, num_buckets, max_distance).dtype == torch.int64
    assert ours.min() >= 0
    assert ours.max() < num_buckets


@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_is_that_of_transformers_with_the_same_weights(bidirectional: bool) -> None:
    config = T5Config(d_model=16, d_kv=4, num_heads=4, num_layers=1, d_ff=8, vocab_size=8, is_decoder=not bidirectional)
    theirs = T5Attention(config, has_relative_attention_bias=True)
    ours = T5RelativeBias(4, bidirectional=bidirectional)
    trained = {n: t for n, t in theirs.state_dict().items() if n.startswith("relative_attention_bias")}
    ours.load_state_dict(trained, strict=True)
    assert torch.equal(ours(150, 150), theirs.compute_bias(150, 150))
    assert torch.equal(ours(3, 150), theirs.compute_bias(3, 150, past_seen_tokens=147))
