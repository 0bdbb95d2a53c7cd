"""Rotary positions: by hand, by complex numbers, against Llama, and what their product depends on."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from viz_core.positional import apply_rotary

even_widths = st.integers(1, 6).map(lambda pairs: 2 * pairs)
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


def test_quarter_turns_by_hand() -> None:
    x = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64).reshape(1, 1, 1, 4)
    quarter = torch.tensor([math.pi / 2], dtype=torch.float64)
    expected = torch.tensor([-2.0, 1, -4, 3], dtype=torch.float64)
    torch.testing.assert_close(apply_rotary(x, quarter, base=1.0)[0, 0, 0], expected, atol=1e-14, rtol=0)
    expected = torch.tensor([-3.0, -4, 1, 2], dtype=torch.float64)
    out = apply_rotary(x, quarter, base=1.0, interleaved=False)[0, 0, 0]
    torch.testing.assert_close(out, expected, atol=1e-14, rtol=0)


@settings(max_examples=30)
@given(
    heads=st.integers(1, 3),
    positions=st.lists(places, min_size=1, max_size=4),
    d=even_widths,
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
        hidden_size=32,
        num_attention_heads=4,
        head_dim=8,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
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


def test_refuses_an_odd_width_and_a_bad_base() -> None:
    with pytest.raises(ValueError, match=r"even d, got shape \(1, 1, 2, 3\)"):
        apply_rotary(torch.zeros(1, 1, 2, 3), torch.arange(2))
    with pytest.raises(ValueError, match="base: expected a positive number, got -1"):
        apply_rotary(torch.zeros(1, 1, 2, 4), torch.arange(2), base=-1.0)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("shape", [(1,), (2,), (4,), (1, 3), (3, 2), (2, 3, 1), ()])
def test_refuses_positions_that_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"positions: expected shape \(3,\) or \(2, 3\), got "):
        apply_rotary(torch.zeros(2, 1, 3, 4), torch.zeros(shape))
