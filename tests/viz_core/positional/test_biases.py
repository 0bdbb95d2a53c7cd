"""ALiBi, KERPLE and T5: the papers' numbers, other implementations, and the bias by loops."""

import math

import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from viz_core.positional import T5RelativeBias, alibi_bias, alibi_slopes, t5_relative_position_bucket
from viz_core.positional.kerple import KerpleLog


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
