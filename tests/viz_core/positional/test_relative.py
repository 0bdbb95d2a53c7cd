"""Learned vectors and biases: loops, the papers' numbers and other implementations."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    LearnedPositionalEmbedding,
    RelativePositionEmbedding1d,
    RelativePositionEmbedding2d,
    T5RelativeBias,
    alibi_bias,
    alibi_slopes,
    clipped_offsets,
    relative_to_absolute,
    relative_to_absolute_steps,
    t5_relative_position_bucket,
)
from viz_core.positional.kerple import KerpleLog
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


def test_published_slopes() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(16).tolist() == pytest.approx([2 ** (-i / 2) for i in range(1, 17)], rel=1e-15)
    assert alibi_slopes(1).tolist() == [2.0**-8]


@pytest.mark.parametrize("num_heads", [1, 2, 3, 5, 7, 8, 12, 20, 25, 32, 71, 112])
def test_slopes_are_those_of_bloom(num_heads: int) -> None:
    theirs = build_alibi_tensor(torch.ones(1, 2), num_heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(alibi_slopes(num_heads).float(), theirs, rtol=1e-5, atol=0)


def test_new_queries_see_the_last_rows_and_both_ways_cost_the_same() -> None:
    full = alibi_bias(6, 9, 9)
    assert torch.equal(alibi_bias(6, 2, 9), full[:, -2:])
    assert torch.equal(full, full.mT)
    diagonal = full.diagonal(dim1=1, dim2=2)
    assert not diagonal.any()
    assert not diagonal.signbit().any()


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


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"q: expected shape \(batch, 8, queries, d\), got \(1, 2, 3, 4\)"):
        KerpleLog(8).bias(torch.zeros(1, 2, 3, 4), 3)
    with pytest.raises(ValueError, match="num_heads: expected at least 1, got 0"):
        KerpleLog(0)


# First distance, last distance, bucket; from 91 on everything is in bucket 15.
PUBLISHED = [
    *((i, i, i) for i in range(8)),
    (8, 11, 8),
    (12, 15, 9),
    (16, 22, 10),
    (23, 31, 11),
    (32, 45, 12),
    (46, 63, 13),
    (64, 90, 14),
    (91, 5000, 15),
]


@pytest.mark.parametrize(("first", "last", "bucket"), PUBLISHED)
def test_published_buckets(first: int, last: int, bucket: int) -> None:
    distances = torch.arange(first, last + 1)
    assert t5_relative_position_bucket(-distances).unique().tolist() == [bucket]
    # The key itself is no later key: distance 0 has one bucket.
    after = bucket + 16 if first > 0 else bucket
    assert t5_relative_position_bucket(distances).unique().tolist() == [after]


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


@pytest.mark.parametrize(
    ("bidirectional", "num_buckets", "max_distance", "message"),
    [
        (True, 3, 128, "num_buckets: expected at least 4, got 3"),
        (False, 1, 128, "num_buckets: expected at least 2, got 1"),
        (True, 32, 8, "max_distance: expected more than 8, below which buckets are exact, got 8"),
        (False, 32, 16, "max_distance: expected more than 16"),
    ],
)
def test_refuses_buckets_that_cannot_be_made(
    bidirectional: bool, num_buckets: int, max_distance: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        t5_relative_position_bucket(torch.arange(3), bidirectional, num_buckets, max_distance)
    with pytest.raises(ValueError, match=message):
        T5RelativeBias(2, num_buckets, max_distance, bidirectional)
