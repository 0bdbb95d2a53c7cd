"""The sinusoidal table and rotary positions: by hand, by loops, and against the book and Llama."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from viz_core.positional import PositionalEncoding, apply_rotary, relative_projection, sinusoidal_table


def entry(i: int, c: int, d: int, base: float = 10000.0) -> float:
    """One entry by its formula, with nothing of torch."""
    phase = i * base ** (-(c - c % 2) / d)
    return math.cos(phase) if c % 2 else math.sin(phase)


@settings(max_examples=40)
@given(n=st.integers(0, 12), d=st.integers(1, 13), base=st.sampled_from([1.0, 2.0, 100.0, 10000.0]))
def test_every_entry_follows_the_formula_for_any_width(n: int, d: int, base: float) -> None:
    expected = torch.tensor([[entry(i, c, d, base) for c in range(d)] for i in range(n)], dtype=torch.float64)
    torch.testing.assert_close(
        sinusoidal_table(n, d, base, dtype=torch.float64), expected.reshape(n, d), atol=1e-13, rtol=0
    )


def test_far_positions_are_as_exact_as_near_ones() -> None:
    row = sinusoidal_table(100_001, 8)[-1]
    exact = torch.tensor([entry(100_000, c, 8) for c in range(8)])
    torch.testing.assert_close(row, exact, atol=1e-7, rtol=0)


@pytest.mark.parametrize("d", [1, 7, 8])
def test_encoding_adds_the_rows_from_its_offset(d: int) -> None:
    encoding = PositionalEncoding(d, max_len=10)
    X = torch.arange(2 * 3 * d, dtype=torch.float32).reshape(2, 3, d)
    P = sinusoidal_table(10, d)
    assert torch.equal(encoding(X), X + P[:3])
    assert torch.equal(encoding(X, offset=7), X + P[7:])
    assert encoding(X.half()).dtype == torch.float16


def test_encoding_has_nothing_to_save() -> None:
    encoding = PositionalEncoding(6)
    assert encoding.state_dict() == {}
    assert torch.equal(encoding.P, sinusoidal_table(1000, 6)[None])


def test_dropout_acts_on_the_sum_and_only_in_training() -> None:
    encoding = PositionalEncoding(50, dropout=0.5, max_len=20)
    X = torch.ones(1, 20, 50)
    total = X + encoding.P
    torch.manual_seed(0)
    dropped = encoding(X)
    survives = dropped != 0
    assert 0.4 < survives.float().mean() < 0.6
    torch.testing.assert_close(dropped[survives], 2 * total[survives])
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
    close(relative_projection(offset, d) @ row(position, d), row(position + offset, d), atol=1e-10)


def test_no_matrix_moves_the_lone_sine_of_an_odd_width() -> None:
    P = sinusoidal_table(60, 3, dtype=torch.float64)
    best = torch.linalg.lstsq(P[:-1], P[1:]).solution
    residual = (P[:-1] @ best - P[1:]).abs().amax(dim=0)
    close(residual[:2], torch.zeros(2, dtype=torch.float64))
    assert residual[2] > 1e-3
    with pytest.raises(ValueError, match="num_hiddens: expected an even number, got 3"):
        relative_projection(1, 3)


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
def test_by_complex_numbers(
    heads: int, positions: list[float], d: int, base: float, interleaved: bool, seed: int
) -> None:
    where = torch.tensor(positions, dtype=torch.float64)
    x = randn(2, heads, len(positions), d, seed=seed)
    expected = by_complex_numbers(x, where, base, interleaved)
    torch.testing.assert_close(apply_rotary(x, where, base, interleaved), expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("interleaved", [True, False])
def test_each_batch_row_may_have_its_own_positions(interleaved: bool) -> None:
    x, positions = randn(2, 3, 4, 6), torch.tensor([[0, 1, 2, 3], [-7, 5, 5, 40]])
    out = apply_rotary(x, positions, interleaved=interleaved)
    torch.testing.assert_close(out, by_complex_numbers(x, positions, 10000.0, interleaved), atol=1e-12, rtol=0)
    for b in range(2):
        alone = apply_rotary(x[b : b + 1], positions[b], interleaved=interleaved)
        torch.testing.assert_close(out[b : b + 1], alone, atol=1e-14, rtol=0)
    assert torch.equal(out, apply_rotary(x, positions.double(), interleaved=interleaved))


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
def test_half_split_is_llama(theta: float) -> None:
    config = LlamaConfig(
        hidden_size=32, num_attention_heads=4, head_dim=8, rope_parameters={"rope_type": "default", "rope_theta": theta}
    )
    q, k = randn(2, 4, 10, 8, dtype=torch.float32), randn(2, 2, 10, 8, seed=1, dtype=torch.float32)
    positions = torch.stack([torch.arange(10), torch.arange(50, 60)])
    theirs = apply_rotary_pos_emb(q, k, *LlamaRotaryEmbedding(config)(q, positions))
    for x, expected in zip((q, k), theirs, strict=True):
        torch.testing.assert_close(apply_rotary(x, positions, theta, interleaved=False), expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rounded_once_in_the_type_of_x_even_far_out(dtype: torch.dtype) -> None:
    x, positions = randn(1, 2, 3, 8).to(dtype), torch.tensor([0, 2049, 100_000])
    out = apply_rotary(x, positions)
    assert out.dtype == dtype
    exact = by_complex_numbers(x.double(), positions, 10000.0, interleaved=True)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(out.double(), exact, atol=4 * eps if dtype == torch.float32 else 1e-6, rtol=eps)
