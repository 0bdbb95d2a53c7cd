"""What lessons state of encodings and scores: counted by hand, or on the layers themselves."""

import pytest
import torch

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.position_embeddings.scheme_parts import GridTerms, column_major
from viz_core.lessons.relative_projection.proof import projection_residual
from viz_core.lessons.scoring_functions.score_contest import word_scores
from viz_core.lessons.sinusoidal_encoding.properties import lone_sine, single_precision
from viz_core.positional import sinusoidal_rows, sinusoidal_table
from viz_core.trace import record


@pytest.mark.parametrize(("d", "odd"), [(4, 5), (5, 5)])
def test_half_a_pair_breaks_the_length_of_rows(d: int, odd: int) -> None:
    table = lone_sine(50, d)
    assert table.shape == (50, odd)
    assert float((table.square().sum(dim=1) - odd // 2).abs().max()) > 1e-4


def test_single_precision_keeps_lengths_and_loses_angles() -> None:
    table, exact = single_precision(2000, 32), sinusoidal_table(2000, 32, dtype=torch.float64)
    assert float((table.square().sum(dim=1) - 16).abs().max()) < 1e-12
    assert 1e-6 < float((table - exact).abs().max()) < 2e-4


def test_the_other_sign_moves_back() -> None:
    places = torch.arange(20)
    assert float(projection_residual(0, 8, places, mirrored=True).max()) < 1e-12
    back, on = (sinusoidal_rows(places + step, 8, dtype=torch.float64) for step in (-3, 3))
    found = projection_residual(3, 8, places, mirrored=True)
    assert found == pytest.approx((back - on).abs().amax(dim=1).numpy(), abs=1e-12)


def test_columns_laid_out_first_land_on_other_cells() -> None:
    column = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    terms = GridTerms(column.long(), column.long(), torch.zeros(2, 3), column)
    assert column_major(terms).total.tolist() == [[1, 1, 2], [2, 3, 3]]


def test_two_words_become_the_number_the_layer_uses() -> None:
    torch.manual_seed(0)
    layer, X = MultiHeadAttention(12, 3).eval().requires_grad_(False), torch.randn(5, 12)
    made = word_scores(layer, X, head=1)
    with record() as trace:
        layer(X[None], X[None], X[None])
    weights = trace[trace.sites[0]].weights(head=1)[0]
    for query in range(5):
        assert made.weights(query) == pytest.approx(weights[query].numpy(), abs=1e-6)
        assert float(made.terms(query, 2).sum()) / 2 == pytest.approx(float(made.scores(query)[2]), abs=1e-6)
