"""The initialisation against the matrices it promises, and what heads do with it before any training."""

from __future__ import annotations

import pytest
import torch

from recipes.mimetic import grid_sinusoids, start_like_trained
from viz_core.models import ViT
from viz_core.trace import record


@pytest.fixture
def model() -> ViT:
    torch.manual_seed(0)
    model = ViT((12, 20), 4, 32, 48, 2, 2, 0.0, 0.0)
    start_like_trained(model, diagonal=0.7, apart=0.4)
    return model.eval()


@torch.no_grad()
def test_products_of_projections_lean_to_the_identity(model: ViT) -> None:
    """Diagonals stand out by what was asked for, and ranks are those a head has room for."""
    for block in model.blocks:
        attention = block.attention
        for head in range(2):
            rows = slice(16 * head, 16 * head + 16)
            product = attention.W_q.weight[rows].T @ attention.W_k.weight[rows]
            assert torch.linalg.matrix_rank(product, rtol=1e-4) == 16
            assert product.diagonal().mean() > 0.3
            assert abs(product.mean() - product.trace() / 32**2) < 0.05
        product = attention.W_o.weight @ attention.W_v.weight
        assert product.diagonal().mean() == pytest.approx(-0.4, abs=0.08)
        assert product.fill_diagonal_(0).std() == pytest.approx(0.4 / 32**0.5, rel=0.1)


def test_the_best_approximation_of_its_rank(model: ViT) -> None:
    """What the second largest half of the singular values holds is what a head leaves out (Eckart and Young)."""
    torch.manual_seed(3)
    one = ViT(4, 4, 8, 8, 1, 1, 0.0, 0.0)
    state = torch.get_rng_state()
    start_like_trained(one, diagonal=0.7)
    torch.set_rng_state(state)
    wanted = 0.7 * (torch.randn(8, 8) / 8**0.5 + torch.eye(8))
    attention = one.blocks[0].attention
    torch.testing.assert_close(attention.W_q.weight.T @ attention.W_k.weight, wanted, atol=1e-5, rtol=1e-5)


def test_patches_far_apart_differ_more(model: ViT) -> None:
    table = grid_sinusoids(3, 5, 32)
    similarity = table @ table.T
    assert torch.equal(model.pos_embedding[0, 1:], table)
    assert similarity[0].argsort(descending=True)[0] == 0
    assert similarity[0, 1] > similarity[0, 2] > similarity[0, 4]
    assert similarity[0, 5] > similarity[0, 10]
    torch.testing.assert_close(similarity[0, 6] - similarity[0, 5], similarity[0, 1] - similarity[0, 0])


def test_an_untrained_model_looks_around_itself(model: ViT) -> None:
    with record() as trace, torch.no_grad():
        model(torch.randn(1, 3, 12, 20, generator=torch.Generator().manual_seed(1)))
    weights = trace["encoder.0.self"].weights()[0, :, 1:, 1:].mean(dim=0)
    assert weights.diagonal().mean() > 2 * weights.mean()
