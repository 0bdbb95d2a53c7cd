"""Position schemes inside attention: rotation and bias against loops, at the last steps of a cache too."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    ALiBi,
    PositionScheme,
    RelativePositionEmbedding1d,
    RelativePositionEmbedding2d,
    Rotary,
    T5RelativeBias,
)
from viz_core.positional.entry import scheme_of

HEADS, HEAD_DIM, LENGTH = 4, 6, 9

SCHEMES: dict[str, Callable[[], PositionScheme]] = {
    "none": PositionScheme,
    "rotary": Rotary,
    "rotary-half-split": lambda: Rotary(50.0, interleaved=False),
    "alibi": ALiBi,
    "t5": lambda: T5RelativeBias(HEADS, num_buckets=8, max_distance=6),
    "t5-decoder": lambda: T5RelativeBias(HEADS, num_buckets=5, max_distance=6, bidirectional=False),
    "relative": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM),
    "relative-by-head": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM, HEADS),
    "shaw": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM, max_distance=2),
    "absolute": lambda: AbsolutePositionEmbedding1d(LENGTH, HEAD_DIM),
}


@torch.no_grad()
def bias_by_loops(scheme: PositionScheme, queries: Tensor, num_keys: int) -> Tensor:
    """(batch, heads, queries, keys) in float64; queries are the last of the keys, already turned."""
    batch, heads, num_queries, d = queries.shape
    out = torch.zeros(batch, heads, num_queries, num_keys, dtype=torch.float64)
    for h in range(heads):
        for i in range(num_queries):
            for j in range(num_keys):
                offset = j - (num_keys - num_queries + i)
                out[:, h, i, j] = _entry(scheme, queries[:, h, i].double(), h, heads, j, offset, d)
    return out


def _entry(scheme: PositionScheme, q: Tensor, h: int, heads: int, j: int, offset: int, d: int) -> Tensor | float:
    if isinstance(scheme, ALiBi):  # a number of heads that is a power of two
        return -(2.0 ** (-8 * (h + 1) / heads)) * abs(offset)
    if isinstance(scheme, T5RelativeBias):
        from transformers.models.t5.modeling_t5 import T5Attention  # seconds, and few who import the schemes need it

        sizes = (scheme.bidirectional, scheme.num_buckets, scheme.max_distance)
        bucket = T5Attention._relative_position_bucket(torch.tensor([offset]), *sizes)
        return float(scheme.relative_attention_bias.weight[int(bucket), h])
    if isinstance(scheme, AbsolutePositionEmbedding1d):
        return q @ scheme.weight[j].double() / math.sqrt(d)
    if isinstance(scheme, RelativePositionEmbedding1d):
        table = scheme.weight if scheme.weight.dim() == 2 else scheme.weight[h]
        reach = (len(table) - 1) // 2
        return q @ table[max(-reach, min(reach, offset)) + reach].double() / math.sqrt(d)
    return 0.0


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=25)
@given(num_keys=st.integers(1, LENGTH), taken=st.integers(0, LENGTH - 1), seed=st.integers(0, 99))
def test_bias_by_loops(name: str, num_keys: int, taken: int, seed: int) -> None:
    torch.manual_seed(seed)
    scheme = SCHEMES[name]()
    queries = torch.randn(2, HEADS, max(1, num_keys - taken), HEAD_DIM)
    expected = bias_by_loops(scheme, queries, num_keys)
    bias = scheme.bias(queries, num_keys)
    if bias is None:
        assert expected.abs().max() == 0
    else:
        torch.testing.assert_close(bias.expand_as(expected).double(), expected, atol=1e-5, rtol=0)


def test_clipped_offsets_reach_past_the_length_they_were_made_for() -> None:
    scheme = RelativePositionEmbedding1d(3, 4, max_distance=1)
    q = torch.randn(1, 2, 7, 4)
    bias = scheme.bias(q, 9)
    assert bias is not None
    assert torch.equal(bias[..., 0, 0], bias[..., 0, 1])  # the first query stands at 2: keys 0 and 1 lie before it
    assert not torch.equal(bias[..., 0, 1], bias[..., 0, 2])


def test_the_grid_divides_its_scores_too() -> None:
    scheme = RelativePositionEmbedding2d(2, 3, 4)
    q = torch.randn(1, 2, 6, 4)
    torch.testing.assert_close(scheme.bias(q, 6), scheme(q) / 2)


def test_a_scheme_is_shared_and_a_maker_makes_new_ones() -> None:
    shared = T5RelativeBias(2)
    assert scheme_of(shared) is shared
    assert scheme_of(None) is None
    one, other = scheme_of(lambda: T5RelativeBias(2)), scheme_of(lambda: T5RelativeBias(2))
    assert one is not other
    assert isinstance(scheme_of(ALiBi), ALiBi)
    assert type(scheme_of(PositionScheme)) is PositionScheme
