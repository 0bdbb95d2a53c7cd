"""Attention with one head, additive and scaled dot-product: numbers by hand, loops over single pairs, the book's
example, and what neither layer may do."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.attention import AdditiveAttention, DotProductAttention
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
def test_every_query_equals_its_own_sum(
    kind: str, width: int, key_width: int, hidden: int, num_keys: int, lengths: list[list[int]] | None
) -> None:
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
def test_length_zero_gives_zeros_and_sends_back_no_gradient(kind: str) -> None:
    layer = make(kind, 5, 5).eval()
    queries = torch.randn(2, 2, 5, requires_grad=True)
    output = layer(queries, torch.randn(2, 4, 5), torch.randn(2, 4, 6), torch.tensor([[0, 4], [2, 0]]))
    assert torch.equal(output[0, 0], torch.zeros(6))
    assert torch.equal(output[1, 1], torch.zeros(6))
    (gradient,) = torch.autograd.grad(output.square().sum(), queries)
    assert torch.equal(gradient[0, 0], torch.zeros(5))
    assert gradient[0, 1].abs().min() > 0
    assert gradient.isfinite().all()


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


def test_additive_scores_by_hand() -> None:
    """Widths 1 and 2: scores 2 tanh(1 + 0) = 1.523188 and 2 tanh(1 - 1) = 0, weights 0.821007 and 0.178993."""
    layer = AdditiveAttention(1, 2, 1).eval()
    weights = {"W_q.weight": [[1.0]], "W_k.weight": [[1.0, -1.0]], "w_v.weight": [[2.0]]}
    layer.load_state_dict({name: torch.tensor(rows) for name, rows in weights.items()}, strict=True)
    queries, keys = torch.tensor([[[1.0]]]), torch.tensor([[[3.0, 3.0], [0.0, 1.0]]])
    torch.testing.assert_close(layer.score(queries, layer.W_k(keys)), torch.tensor([[[1.523188, 0.0]]]))
    output = layer(queries, keys, torch.tensor([[[10.0], [20.0]]]))
    torch.testing.assert_close(output, torch.tensor([[[10 * 0.821007 + 20 * 0.178993]]]), atol=2e-5, rtol=0)


def test_keys_projected_once_give_the_same_as_keys_projected_each_time() -> None:
    layer = AdditiveAttention(5, 3, 7).eval()
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 4, 3), torch.randn(2, 4, 6)
    lengths = torch.tensor([2, 4])
    projected = layer.W_k(keys)
    steps = [layer.pool(layer.weigh(queries[:, i : i + 1], projected, lengths), values) for i in range(3)]
    torch.testing.assert_close(torch.cat(steps, dim=1), layer(queries, keys, values, lengths))


Q, K = torch.zeros(2, 1, 5), torch.zeros(2, 4, 3)
X = torch.zeros(2, 3, 4)
DOT, ADDITIVE = DotProductAttention(), AdditiveAttention(5, 3, 7)
REFUSED: list[tuple[Callable[[], Tensor], str]] = [
    (lambda: ADDITIVE(K, K, K), r"queries: expected shape \(batch, n, 5\), got \(2, 4, 3\)"),
    (lambda: ADDITIVE(Q, Q, Q), r"keys: expected shape \(batch, n, 3\), got \(2, 1, 5\)"),
    (lambda: ADDITIVE(Q, K, Q), r"expected one value for each key, got shapes \(2, 4, 3\), \(2, 1, 5\)"),
    (lambda: ADDITIVE(Q, K, K, torch.tensor([1, 2, 3])), r"valid_lens: expected shape \(2,\) or \(2, 1\), got \(3,\)"),
    (lambda: DOT(X, torch.zeros(2, 3, 5), X), "expected queries and keys of one width, got 4 and 5"),
    (lambda: DOT(X, X, torch.zeros(2, 2, 4)), r"expected one value for each key, got shapes .*3, 4\) and .*2, 4\)"),
    (lambda: DOT(X, X[:1], X[:1]), "expected queries and keys of one batch size, got 2 and 1"),
    (lambda: DOT(X, X, X, torch.tensor([3])), r"valid_lens: expected shape \(2,\) or \(2, 3\), got \(1,\)"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
@pytest.mark.usefixtures("shapes_unchecked")
def test_what_does_not_fit_is_refused(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
