"""Sinusoids, rotations, learned vectors and biases: by hand, by loops, and against other implementations."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from viz_core import positional


def entry(i: int, c: int, d: int, base: float = 10000.0) -> float:
    """One entry by its formula, with nothing of torch."""
    phase = i * base ** (-(c - c % 2) / d)
    return math.cos(phase) if c % 2 else math.sin(phase)


@settings(max_examples=40)
@given(n=st.integers(0, 12), d=st.integers(1, 13), base=st.sampled_from([1.0, 2.0, 100.0, 10000.0]))
def test_every_entry_follows_the_formula_for_any_width(n: int, d: int, base: float) -> None:
    expected = torch.tensor([[entry(i, c, d, base) for c in range(d)] for i in range(n)], dtype=torch.float64)
    torch.testing.assert_close(
        positional.sinusoidal_table(n, d, base, dtype=torch.float64), expected.reshape(n, d), atol=1e-13, rtol=0
    )


def test_far_positions_are_as_exact_as_near_ones() -> None:
    row, exact = positional.sinusoidal_table(100_001, 8)[-1], torch.tensor([entry(100_000, c, 8) for c in range(8)])
    torch.testing.assert_close(row, exact, atol=1e-7, rtol=0)


@pytest.mark.parametrize("d", [1, 7, 8])
def test_encoding_adds_the_rows_from_its_offset(d: int) -> None:
    encoding = positional.PositionalEncoding(d, max_len=10)
    X = torch.arange(2 * 3 * d, dtype=torch.float32).reshape(2, 3, d)
    P = positional.sinusoidal_table(10, d)
    assert torch.equal(encoding(X), X + P[:3])
    assert torch.equal(encoding(X, offset=7), X + P[7:])
    assert encoding(X.half()).dtype == torch.float16


def test_dropout_acts_on_the_sum_and_only_in_training() -> None:
    encoding, X = positional.PositionalEncoding(50, dropout=0.5, max_len=20), torch.ones(1, 20, 50)
    total, dropped = X + encoding.P, encoding(X)
    assert 0.4 < (dropped != 0).float().mean() < 0.6
    torch.testing.assert_close(dropped[dropped != 0], 2 * total[dropped != 0])
    assert torch.equal(encoding.eval()(X), total)


even_widths = st.integers(1, 8).map(lambda pairs: 2 * pairs)
offsets = st.one_of(st.integers(-1000, 1000), st.floats(-1000, 1000))


def close(actual: Tensor, expected: Tensor, atol: float = 1e-11) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def row(position: float, d: int) -> Tensor:
    """A row of the table at any real position."""
    phases = [position * 10000 ** (-2 * j / d) for j in range(d // 2)]
    return torch.tensor([f(p) for p in phases for f in (math.sin, math.cos)], dtype=torch.float64)


@settings(max_examples=40)
@given(offset=offsets, position=st.floats(-1000, 1000), d=even_widths)
def test_moves_positions_between_the_whole_ones_too(offset: float, position: float, d: int) -> None:
    close(positional.relative_projection(offset, d) @ row(position, d), row(position + offset, d), atol=1e-10)


rotary_widths = st.integers(1, 6).map(lambda pairs: 2 * pairs)
places = st.one_of(st.integers(-500, 500), st.floats(-500, 500))


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def by_complex_numbers(x: Tensor, positions: Tensor, base: float, interleaved: bool) -> Tensor:
    """(a + bi) e^(i position omega), pair by pair."""
    out, d = torch.empty_like(x), x.shape[-1]
    for b in range(x.shape[0]):
        for i in range(x.shape[2]):
            position = (positions if positions.dim() == 1 else positions[b])[i].item()
            for j in range(d // 2):
                first, second = (2 * j, 2 * j + 1) if interleaved else (j, j + d // 2)
                turn = complex(math.cos(position * base ** (-2 * j / d)), math.sin(position * base ** (-2 * j / d)))
                for h in range(x.shape[1]):
                    z = complex(x[b, h, i, first].item(), x[b, h, i, second].item()) * turn
                    out[b, h, i, first], out[b, h, i, second] = z.real, z.imag
    return out


@settings(max_examples=30)
@given(
    heads=st.integers(1, 3),
    positions=st.lists(places, min_size=1, max_size=4),
    d=rotary_widths,
    base=st.sampled_from([1.0, 100.0, 10000.0]),
    interleaved=st.booleans(),
    seed=st.integers(0, 99),
)
def test_by_complex_numbers(heads, positions, d, base, interleaved, seed):
    where = torch.tensor(positions, dtype=torch.float64)
    x = randn(2, heads, len(positions), d, seed=seed)
    expected = by_complex_numbers(x, where, base, interleaved)
    torch.testing.assert_close(positional.apply_rotary(x, where, base, interleaved), expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
def test_half_split_is_llama(theta: float) -> None:
    config = LlamaConfig(
        hidden_size=32, num_attention_heads=4, head_dim=8, rope_parameters={"rope_type": "default", "rope_theta": theta}
    )
    q, k = randn(2, 4, 10, 8, dtype=torch.float32), randn(2, 2, 10, 8, seed=1, dtype=torch.float32)
    positions = torch.stack([torch.arange(10), torch.arange(50, 60)])
    theirs = apply_rotary_pos_emb(q, k, *LlamaRotaryEmbedding(config)(q, positions))
    for x, expected in zip((q, k), theirs, strict=True):
        torch.testing.assert_close(
            positional.apply_rotary(x, positions, theta, interleaved=False), expected, atol=2e-5, rtol=0
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rounded_once_in_the_type_of_x_even_far_out(dtype: torch.dtype) -> None:
    x, positions = randn(1, 2, 3, 8).to(dtype), torch.tensor([0, 2049, 100_000])
    out = positional.apply_rotary(x, positions)
    assert out.dtype == dtype
    exact = by_complex_numbers(x.double(), positions, 10000.0, interleaved=True)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(out.double(), exact, atol=4 * eps if dtype == torch.float32 else 1e-6, rtol=eps)


def test_steps_by_hand() -> None:
    steps = positional.relative_to_absolute_steps(torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
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
    absolute = positional.relative_to_absolute(scores)
    assert absolute.shape == (batch, heads, n, n)
    for i in range(n):
        for j in range(n):
            assert torch.equal(absolute[..., i, j], scores[..., i, j - i + n - 1])
    assert torch.equal(scores, before)


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
    embedding = positional.RelativePositionEmbedding2d(height, width, d, heads if own_tables else None).double()
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
    assert positional.alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert positional.alibi_slopes(16).tolist() == pytest.approx([2 ** (-i / 2) for i in range(1, 17)], rel=1e-15)
    assert positional.alibi_slopes(1).tolist() == [2.0**-8]


@pytest.mark.parametrize("num_heads", [1, 2, 3, 5, 7, 8, 12, 20, 25, 32, 71, 112])
def test_slopes_are_those_of_bloom(num_heads: int) -> None:
    theirs = build_alibi_tensor(torch.ones(1, 2), num_heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(positional.alibi_slopes(num_heads).float(), theirs, rtol=1e-5, atol=0)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (64, 128), (32, 256), (20, 40), (33, 100), (4, 3), (5, 3), (128, 65)]
)
def test_buckets_are_those_of_transformers(bidirectional: bool, num_buckets: int, max_distance: int) -> None:
    offsets = torch.cat([torch.arange(-400, 401), torch.tensor([-(10**6), 10**6])])
    theirs = T5Attention._relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    ours = positional.t5_relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
    assert torch.equal(ours, theirs)
    assert (
        positional.t5_relative_position_bucket(offsets.int(), bidirectional, num_buckets, max_distance).dtype
        == torch.int64
    )
    assert ours.min() >= 0
    assert ours.max() < num_buckets


@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_is_that_of_transformers_with_the_same_weights(bidirectional: bool) -> None:
    config = T5Config(d_model=16, d_kv=4, num_heads=4, num_layers=1, d_ff=8, vocab_size=8, is_decoder=not bidirectional)
    theirs = T5Attention(config, has_relative_attention_bias=True)
    ours = positional.T5RelativeBias(4, bidirectional=bidirectional)
    trained = {n: t for n, t in theirs.state_dict().items() if n.startswith("relative_attention_bias")}
    ours.load_state_dict(trained, strict=True)
    assert torch.equal(ours(150, 150), theirs.compute_bias(150, 150))
    assert torch.equal(ours(3, 150), theirs.compute_bias(3, 150, past_seen_tokens=147))
