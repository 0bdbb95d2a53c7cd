"""One attention layer under every scheme of the register."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional import (
    apply_rotary,
    sinusoidal_table,
)
from viz_core.positional.entry import SchemeSizes
from viz_core.positional.register import BY_NAME, SCHEMES

NAMES = [scheme.name for scheme in SCHEMES]


def shared_layer(n: int = 6, d: int = 16, heads: int = 2, height: int = 1, **sizes: object) -> SharedLayer:
    X = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
    return SharedLayer(X, SchemeSizes(n, d, heads, height, n // height, **sizes))  # type: ignore[arg-type]


def test_without_positions_scores_are_scaled_products_of_projections() -> None:
    s = shared_layer(n=3, d=4, heads=2)
    W_q, W_k = s.draw(0, 4, 4) / 2, s.draw(1, 4, 4) / 2
    scores = s.scores(BY_NAME["none"])
    for h in range(2):
        for i in range(3):
            for j in range(3):
                q, k = (s.X[i] @ W_q)[2 * h : 2 * h + 2], (s.X[j] @ W_k)[2 * h : 2 * h + 2]
                assert scores[h, i, j].item() == pytest.approx((q @ k).item() / math.sqrt(2), abs=1e-5)


def test_sinusoids_are_added_before_the_projections() -> None:
    s = shared_layer()
    positioned = SharedLayer(s.X + sinusoidal_table(6, 16), s.sizes)
    torch.testing.assert_close(s.output(BY_NAME["sinusoidal"]), positioned.output(BY_NAME["none"]))


def test_a_given_table_is_the_learned_one() -> None:
    s = shared_layer()
    table = torch.randn(6, 16)
    with_table = SharedLayer(s.X, s.sizes, table)
    expected = SharedLayer(s.X + table, s.sizes).scores(BY_NAME["none"])
    torch.testing.assert_close(with_table.scores(BY_NAME["learned"]), expected)


def test_rotary_rotates_queries_and_keys_and_not_values() -> None:
    s = shared_layer()
    q, k, v, _ = s.project(BY_NAME["none"])
    positions = torch.arange(6)
    expected = (apply_rotary(q, positions) @ apply_rotary(k, positions).transpose(-2, -1) / math.sqrt(8))[0]
    torch.testing.assert_close(s.scores(BY_NAME["rotary"]), expected)
    torch.testing.assert_close(s.project(BY_NAME["rotary"])[2], v)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_softmax_of_the_scores_and_output_their_mean_of_values(name: str) -> None:
    s, scheme = shared_layer(), BY_NAME[name]
    weights = s.weights(scheme)
    torch.testing.assert_close(weights, s.scores(scheme).softmax(dim=-1))
    heads = weights @ s.project(scheme)[2][0]
    torch.testing.assert_close(s.output(scheme), heads.transpose(0, 1).reshape(6, 16))


@pytest.mark.parametrize("name", NAMES)
def test_maps_depend_on_the_seed_of_the_layer_alone(name: str) -> None:
    before = shared_layer().scores(BY_NAME[name])
    torch.manual_seed(12345)
    torch.testing.assert_close(shared_layer().scores(BY_NAME[name]), before, atol=0, rtol=0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_every_scheme_adds_scores_of_about_the_same_size(name: str) -> None:
    size = shared_layer(n=12, d=256, heads=8).position_scores(BY_NAME[name]).std().item()
    assert 0.4 < size < 2


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 16, 2, 1, 0), "num_tokens: expected at least 1, got 0"),
        ((6, 16, 3, 1, 6), "expected a multiple of 2"),
        ((6, 6, 3, 2, 2), "expected 6 cells, got 2 x 2"),
        ((6, 10, 2, 1, 6), "expected a multiple of 2"),
    ],
)
def test_impossible_sizes_are_refused(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SchemeSizes(*sizes)
