"""The layers that are compared, and their costs, against loops and numbers by hand."""

import math

import pytest
import torch
from einops import rearrange
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from viz_core.lessons.architectures import (
    ARCHITECTURES,
    Convolution,
    LayerSizes,
    Recurrent,
    RestrictedSelfAttention,
    build_layer,
    crossover,
    layer_cost,
    path_length,
    pooled_residual,
    shuffled_residual,
    signal_strength,
    timed_call,
)


def restricted_by_loop(layer: RestrictedSelfAttention, X: Tensor) -> Tensor:
    """Each query by itself over its last r keys."""
    inner = layer.attention
    q, k, v = (
        rearrange(linear(X), "b n (h w) -> b h n w", h=inner.num_heads) for linear in (inner.W_q, inner.W_k, inner.W_v)
    )
    rows = []
    for t in range(X.shape[1]):
        visible = slice(max(0, t - layer.window + 1), t + 1)
        weights = torch.softmax(q[:, :, t : t + 1] @ k[:, :, visible].mT / q.shape[-1] ** 0.5, dim=-1)
        rows.append(weights @ v[:, :, visible])
    return inner.W_o(rearrange(torch.cat(rows, dim=2), "b h n w -> b n (h w)"))


@pytest.mark.parametrize("n", [1, 3, 4, 5, 12, 13])
@pytest.mark.parametrize("window", [1, 4, 5, 40])
@pytest.mark.parametrize("heads", [1, 2])
def test_restricted_attention_is_attention_over_the_last_r(n: int, window: int, heads: int) -> None:
    layer, X = RestrictedSelfAttention(8, window, heads).double(), torch.randn(2, n, 8, dtype=torch.float64)
    torch.testing.assert_close(layer(X), restricted_by_loop(layer, X), atol=1e-12, rtol=0)


@pytest.mark.parametrize("dilation", [1, 3])
def test_convolution_sums_a_token_and_those_before_it(dilation: int) -> None:
    layer, X = Convolution(4, 3, dilation).double(), torch.randn(1, 10, 4, dtype=torch.float64)
    output = layer(X)[0]
    for t in range(10):
        wanted = layer.conv.bias.clone()
        for j in range(3):
            place = t - (2 - j) * dilation
            if place >= 0:
                wanted = wanted + layer.conv.weight[:, :, j] @ X[0, place]
        torch.testing.assert_close(output[t], wanted, atol=1e-12, rtol=0)


def test_recurrence_steps_from_state_to_state() -> None:
    layer, X = Recurrent(4), torch.randn(1, 6, 4)
    state, rnn = torch.zeros(4), layer.rnn
    for t, output in enumerate(layer(X)[0]):
        state = torch.tanh(rnn.weight_ih_l0 @ X[0, t] + rnn.bias_ih_l0 + rnn.weight_hh_l0 @ state + rnn.bias_hh_l0)
        torch.testing.assert_close(output, state, atol=1e-6, rtol=0)


def test_the_published_table_with_numbers() -> None:
    """n = 100, d = 512, k = 4, r = 25, by hand."""
    rows = {name: layer_cost(name, LayerSizes(100, 512, 4, 25)) for name in ARCHITECTURES}
    assert {name: row.order for name, row in rows.items()} == {
        "attention": 5_120_000,
        "recurrent": 26_214_400,
        "convolution": 104_857_600,
        "dilated": 104_857_600,
        "restricted": 1_280_000,
    }
    assert [row.sequential for row in rows.values()] == [1, 100, 1, 1, 1]
    assert [rows[name].path for name in ("attention", "recurrent", "convolution", "restricted")] == [1, 100, 25, 4]
    assert rows["dilated"].path == pytest.approx(math.log(100) / math.log(4))
    assert rows["attention"].counted == 2 * 5_120_000 + 4 * 26_214_400


@pytest.mark.parametrize("name", ["attention", "recurrent", "convolution", "dilated"])
@pytest.mark.parametrize(("n", "d", "k"), [(1, 8, 1), (13, 8, 3), (16, 12, 5)])
def test_counted_is_what_torch_counts(name: str, n: int, d: int, k: int) -> None:
    sizes = LayerSizes(n, d, k, 4)
    with torch.device("meta"):
        layer, X = build_layer(name, sizes), torch.empty(1, n, d)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(X)
    assert counter.get_total_flops() == 2 * layer_cost(name, sizes).counted  # it counts multiplications and additions


def test_a_window_wider_than_the_text_is_the_whole_text() -> None:
    sizes = LayerSizes(10, 64, 3, 999)
    restricted, full = layer_cost("restricted", sizes), layer_cost("attention", sizes)
    assert (restricted.order, restricted.counted, restricted.path) == (full.order, full.counted, 1)
    assert layer_cost("convolution", LayerSizes(5, 8, 9, 1)).path == 1


def test_costs_meet_at_the_crossover() -> None:
    sizes = LayerSizes(7, 64, 3, 20)
    for name, n in {"recurrent": 64, "convolution": 192, "dilated": 192, "restricted": 20}.items():
        assert crossover(name, sizes) == n
        here = LayerSizes(n, 64, 3, 20)
        assert layer_cost(name, here).order == layer_cost("attention", here).order
    before = LayerSizes(63, 64, 3, 20)
    assert layer_cost("attention", before).order < layer_cost("recurrent", before).order


@pytest.mark.parametrize("name", ["convolution", "dilated", "restricted"])
@pytest.mark.parametrize(("first", "last"), [(0, 12), (3, 9), (5, 6)])
@pytest.mark.parametrize("window", [2, 3, 5])
def test_a_signal_arrives_in_the_layer_the_formula_names(name: str, first: int, last: int, window: int) -> None:
    sizes = LayerSizes(13, 4, window, window)
    length = int(path_length(name, first, last, sizes))
    assert signal_strength(name, first, last, sizes, length) > 0
    if length > 1:
        assert signal_strength(name, first, last, sizes, length - 1) == 0


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_signal_goes_back(name: str) -> None:
    assert signal_strength(name, 12, 0, LayerSizes(13, 4, 3, 3), 12) == 0


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_only_self_attention_is_blind_to_order(name: str) -> None:
    X, order = torch.randn(9, 8), torch.tensor([3, 0, 8, 1, 2, 7, 6, 5, 4])
    layer = build_layer(name, LayerSizes(9, 8, 3, 3), depth=1)
    residual, pooled = shuffled_residual(layer, X, order), pooled_residual(layer, X, order)
    if name == "attention":
        assert max(residual, pooled) < 1e-6
    else:
        assert residual > 1e-3
    assert shuffled_residual(layer, X, torch.arange(9)) == 0


def test_a_timed_call_runs_one_layer() -> None:
    output = timed_call("attention", 6, LayerSizes(6, 8, 3, 4), 4, torch.device("cpu"))()
    assert output.shape == (1, 6, 8)  # type: ignore[attr-defined]
