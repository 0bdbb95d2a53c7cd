"""What the options of a layer of attention add to it, a window by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from viz_core.attention import MultiHeadAttention
from viz_core.positional import ALiBi, PositionScheme, RelativePositionEmbedding1d, Rotary
from viz_core.trace import record


def test_the_books_layer_has_no_other_parameters() -> None:
    """Default options change nothing: the same names, the same numbers."""
    plain, changed = MultiHeadAttention(24, 4), MultiHeadAttention(24, 4, num_key_heads=4, positions=PositionScheme())
    assert list(plain.state_dict()) == ["W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"]
    changed.load_state_dict(plain.state_dict(), strict=True)
    X = torch.randn(2, 5, 24)
    assert torch.equal(plain(X, X, X), changed(X, X, X))
    MultiHeadAttention(24, 4, window=2, softcap=1.0, positions=Rotary()).load_state_dict(plain.state_dict())


def test_parameters_of_grouped_queries_and_of_positions() -> None:
    layer = MultiHeadAttention(24, 4, bias=True, num_key_heads=2, positions=RelativePositionEmbedding1d(5, 6))
    shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    assert shapes == {
        "W_q.weight": (24, 24),
        "W_q.bias": (24,),
        "W_k.weight": (12, 24),
        "W_k.bias": (12,),
        "W_v.weight": (12, 24),
        "W_v.bias": (12,),
        "W_o.weight": (24, 24),
        "W_o.bias": (24,),
        "positions.weight": (9, 6),
    }
    X = torch.randn(1, 5, 24)
    assert layer.project(X, X).keys.shape == (1, 2, 5, 6)
    with record() as trace:
        layer(X, X, X)
    assert trace["attention.0"].num_heads == 4


def test_a_window_by_hand() -> None:
    layer = MultiHeadAttention(8, 2, window=2)
    X = torch.randn(1, 4, 8)
    with record() as trace:
        layer(X, X, X)
        layer(X, X, X, causal=True)
        layer(X[:, 3:], X, X)
    both, past, newest = (call.weights()[0, 0] > 0 for call in trace)
    assert both.int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert past.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert newest.int().tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_key_heads": 3}, "num_key_heads: expected a divisor of num_heads=4, got 3"),
        ({"num_key_heads": 0}, "num_key_heads: expected at least 1, got 0"),
        ({"num_key_heads": 2.0}, "num_key_heads: expected a whole number, got float 2.0"),
        ({"num_key_heads": 8}, "num_key_heads: expected a divisor of num_heads=4, got 8"),
        ({"softcap": 0.0}, "softcap: expected a positive number, got 0.0"),
        ({"softcap": float("nan")}, "softcap: expected a positive number, got nan"),
        ({"window": 0}, "window: expected at least 1, got 0"),
        ({"window": 2.5}, "window: expected a whole number, got float 2.5"),
        ({"window": True}, "window: expected a whole number, got bool True"),
        ({"dropout": 2.0}, "dropout: expected a number from 0 to 1, got 2.0"),
        ({"dropout": -1.0}, "dropout: expected a number from 0 to 1, got -1.0"),
        ({"positions": "rotary"}, "positions: expected a scheme, as .*, got 'rotary'"),
    ],
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(24, 4, **options)


@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_calls_are_refused() -> None:
    X = torch.zeros(2, 3, 24)
    layer = MultiHeadAttention(24, 4)
    with pytest.raises(ValueError, match=r"mask: expected a shape that broadcasts to \(2, 4, 3, 3\), got \(2, 1, 3\)"):
        layer(X, X, X, torch.tensor([3, 2]), mask=torch.ones(2, 1, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="mask: expected booleans"):
        layer(X, X, X, torch.tensor([3, 2]), mask=torch.ones(1, 1, 1, 3))
    with pytest.raises(ValueError, match=r"bias: expected a shape that broadcasts to \(2, 4, 3, 3\), got \(4, 3, 2\)"):
        layer(X, X, X, bias=torch.zeros(4, 3, 2))
    for options in ({"window": 2}, {"positions": ALiBi()}):
        with pytest.raises(ValueError, match="num_keys: expected at least num_queries=3, got 2"):
            MultiHeadAttention(24, 4, **options)(X, X[:, :2], X[:, :2])
    with pytest.raises(ValueError, match="expected at least 0, with as many keys as queries or more, got -1"):
        MultiHeadAttention(24, 4, positions=Rotary())(X, X[:, :2], X[:, :2])
    with pytest.raises(ValueError, match=r"expected \(batch, heads, n, d\) with an even d"):
        MultiHeadAttention(20, 4, positions=Rotary())(X[..., :20], X[..., :20], X[..., :20])
