"""T5's buckets against the published table and transformers, and the bias that reads them."""

from __future__ import annotations

import pytest
import torch
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from viz_core.positional import T5RelativeBias, t5_relative_position_bucket

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
