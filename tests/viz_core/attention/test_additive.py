"""Attention with one head and kernel pooling: numbers by hand, loops, the book's examples, and what is refused."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.attention import (
    AdditiveAttention,
    DotProductAttention,
    boxcar,
    constant,
    epanechnikov,
    gaussian,
    nadaraya_watson,
    triangular,
)
from viz_core.attention.kernel_pooling import KERNELS, with_width
from viz_core.lessons.attention_pooling import book_curve
from viz_core.trace import name_site, record

Layer = AdditiveAttention | DotProductAttention


def make(kind: str, width: int, key_width: int = 3, hidden: int = 7, dropout: float = 0.0) -> Layer:
    if kind == "dot":
        return DotProductAttention(dropout)
    return AdditiveAttention(width, key_width, hidden, dropout)


def one_score(layer: Layer, q: Tensor, k: Tensor) -> float:
    """The score of one pair in float64."""
    if isinstance(layer, DotProductAttention):
        return float(q.double() @ k.double()) / math.sqrt(len(q))
    W_q, W_k, w_v = (weight.detach().double() for weight in (layer.W_q.weight, layer.W_k.weight, layer.w_v.weight[0]))
    return float(w_v @ torch.tanh(W_q @ q.double() + W_k @ k.double()))


def one_query(layer: Layer, q: Tensor, keys: Tensor, values: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Output and weights of a single query, pair by pair."""
    powers = [math.exp(one_score(layer, q, k)) for k in keys[:length]]
    weights = torch.tensor([p / sum(powers) for p in powers] + [0.0] * (len(keys) - length), dtype=torch.float64)
    return weights @ values.double(), weights


both = pytest.mark.parametrize("kind", ["dot", "additive"])


@both
@settings(max_examples=25)
@given(
    width=st.integers(1, 4),
    key_width=st.integers(1, 5),
    hidden=st.integers(1, 5),
    num_keys=st.integers(1, 5),
    lengths=st.none() | st.lists(st.lists(st.integers(1, 5), min_size=3, max_size=3), min_size=1, max_size=2),
)
def test_every_query_equals_its_own_sum(kind, width, key_width, hidden, num_keys, lengths):
    """With a length for each query, one for each row of the batch, or none."""
    layer = make(kind, width, key_width, hidden).eval()
    queries, values = torch.randn(2, 3, width), torch.randn(2, num_keys, 6)
    keys = torch.randn(2, num_keys, width if kind == "dot" else key_width)
    full = torch.full((2, 3), num_keys) if lengths is None else torch.tensor(lengths).clamp(max=num_keys).expand(2, 3)
    per_row = lengths is not None and len(lengths) == 1
    full = full[:, :1].expand(2, 3) if per_row else full
    with record() as trace:
        output = layer(queries, keys, values, None if lengths is None else full[:, 0] if per_row else full)
    weights = trace["attention.0"].weights()
    assert weights.shape == (2, 1, 3, num_keys)
    for b in range(2):
        for i in range(3):
            expected, row = one_query(layer, queries[b, i], keys[b], values[b], int(full[b, i]))
            torch.testing.assert_close(output[b, i].double(), expected, atol=2e-6, rtol=0)
            torch.testing.assert_close(weights[b, 0, i].double(), row, atol=1e-6, rtol=0)


@both
def test_dropout_acts_in_training_only_and_not_on_the_recorded_weights(kind: str) -> None:
    queries, keys, values = torch.zeros(1, 1, 2), torch.zeros(1, 1000, 2), torch.ones(1, 1000, 1)
    layer = make(kind, 2, 2, dropout=0.5)
    name_site(layer, "here")
    outputs = [layer(queries, keys, values).item() for _ in range(8)]
    assert len(set(outputs)) > 1
    assert outputs == pytest.approx([1.0] * 8, abs=0.15)
    with record() as trace:
        layer(queries, keys, values)
    torch.testing.assert_close(trace["here"].weights(), torch.full((1, 1, 1, 1000), 1e-3))
    torch.testing.assert_close(layer.eval()(queries, keys, values), torch.ones(1, 1, 1))


numbers = st.lists(st.floats(-5, 5), min_size=1, max_size=7)


def f64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def by_loops(x: Tensor, y: Tensor, queries: Tensor, kernel) -> tuple[list[float], list[list[float]]]:
    """The formula as it stands in the book, one query and one key at a time."""
    answers, rows = [], []
    for q in queries.tolist():
        nearness = [float(kernel(f64(q - key))) for key in x.tolist()]
        total = sum(nearness)
        rows.append([value / total if total else 0.0 for value in nearness])
        answers.append(sum(a * v for a, v in zip(rows[-1], y.tolist(), strict=True)) if total else math.nan)
    return answers, rows


@given(x=numbers, queries=numbers, name=st.sampled_from(sorted(KERNELS)), width=st.sampled_from([0.3, 1.0, 2.5]))
def test_against_loops(x: list[float], queries: list[float], name: str, width: float) -> None:
    kernel = with_width(KERNELS[name], width)
    keys, values, inputs = f64(*x), book_curve(f64(*x)), f64(*queries)
    y_hat, weights = nadaraya_watson(keys, values, inputs, kernel)
    answers, rows = by_loops(keys, values, inputs, kernel)
    if name != "gaussian":  # whose loop underflows far away, and ours does not
        assert [math.isnan(a) for a in answers] == y_hat.isnan().tolist()
        torch.testing.assert_close(y_hat, f64(*answers), equal_nan=True)
        torch.testing.assert_close(weights, torch.tensor(rows, dtype=torch.float64).reshape(weights.shape))
    reached = weights.any(dim=1)
    torch.testing.assert_close(weights.sum(dim=1), reached.double())
    assert (weights >= 0).all()


def test_a_gaussian_reaches_every_key_however_far() -> None:
    """exp(-50000) is 0 in any floating type; the nearest key still takes the query."""
    y_hat, weights = nadaraya_watson(f64(0, 1), f64(3, 5), f64(4.0), gaussian(0.01))
    assert weights.tolist() == [[0, 1]]
    assert y_hat.item() == 5
    single, _ = nadaraya_watson(f64(0, 1).float(), f64(3, 5).float(), f64(4.0).float(), gaussian(0.01))
    assert single.item() == 5


def test_keys_and_values_may_be_vectors() -> None:
    """Against loops, and with a key beside the query at distance 5, by hand."""
    keys, values, queries = torch.randn(7, 3), torch.randn(7, 2), torch.randn(4, 3)
    y_hat, weights = nadaraya_watson(keys, values, queries, gaussian(0.8))
    for i, query in enumerate(queries):
        kernel = [math.exp(-0.5 * (math.dist(query.tolist(), key.tolist()) / 0.8) ** 2) for key in keys]
        expected = [k / sum(kernel) for k in kernel]
        assert weights[i].tolist() == pytest.approx(expected, abs=1e-5)
        mixed = [sum(a * float(v[j]) for a, v in zip(expected, values, strict=True)) for j in range(2)]
        assert y_hat[i].tolist() == pytest.approx(mixed, abs=1e-5)
    _, far = nadaraya_watson(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.zeros(2), torch.zeros(1, 2), gaussian(5.0))
    assert far.tolist()[0] == pytest.approx([math.exp(-0.5) / (1 + math.exp(-0.5)), 1 / (1 + math.exp(-0.5))])


DISTANCES = torch.tensor([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5], dtype=torch.float64)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (boxcar, [0, 1, 1, 1, 1, 1, 0]),  # 1 at distance 1 too, as in the book's text
        (constant, [1, 1, 1, 1, 1, 1, 1]),
        (triangular, [0, 0, 0.5, 1, 0.5, 0, 0]),
        (epanechnikov, [0, 0, 0.5625, 0.75, 0.5625, 0, 0]),
        (
            gaussian(),
            [math.exp(-2), math.exp(-0.5), math.exp(-0.125), 1, math.exp(-0.125), math.exp(-0.5), math.exp(-1.125)],
        ),
        (gaussian(0.5), [math.exp(-8), math.exp(-2), math.exp(-0.5), 1, math.exp(-0.5), math.exp(-2), math.exp(-4.5)]),
    ],
)
def test_values_by_hand(kernel, values) -> None:
    torch.testing.assert_close(kernel(DISTANCES), torch.tensor(values, dtype=torch.float64))


@given(width=st.floats(0.01, 100), distance=st.floats(-200, 200))
def test_a_width_stretches_every_kernel(width: float, distance: float) -> None:
    u = torch.tensor([distance], dtype=torch.float64)
    for kernel in KERNELS.values():
        stretched = with_width(kernel, width)(u)
        torch.testing.assert_close(stretched, kernel(u / width), rtol=1e-9, atol=1e-300)


def test_the_books_curve() -> None:
    published = f64(0, 2.6829, 3.8186, 3.2822, 2.4864, 3.0822)
    torch.testing.assert_close(book_curve(torch.arange(6, dtype=torch.float64)), published, rtol=0, atol=5e-5)
