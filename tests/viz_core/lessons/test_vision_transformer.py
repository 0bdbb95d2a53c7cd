"""Patches, one token's attention, and shuffled pictures, by loops and by hand."""

from collections.abc import Callable

import pytest
import torch

from viz_core.lessons.vision_transformer.patches import (
    book_shape,
    embed_patches,
    neighbour_similarity,
    patchify,
    permutation_test,
    position_similarity,
    principal_filters,
    random_order,
    shuffle_patches,
    unpatchify,
)
from viz_core.models.vit import ViT


def test_patches_by_hand_and_back() -> None:
    X = torch.arange(48.0).reshape(1, 2, 4, 6)
    patches = patchify(X, (2, 3))
    assert patches.shape == (1, 4, 12)
    assert patches[0, 1].tolist() == [3, 4, 5, 9, 10, 11, 27, 28, 29, 33, 34, 35]
    assert torch.equal(unpatchify(patches, (2, 2), (2, 3)), X)


def test_the_embedding_is_patches_times_filters(model: ViT, picture: torch.Tensor) -> None:
    conv = model.patch_embedding.conv
    product = patchify(picture, (3, 3)) @ conv.weight.flatten(start_dim=1).T + conv.bias
    torch.testing.assert_close(product, model.patch_embedding(picture))


def test_shuffling_by_hand() -> None:
    X = torch.arange(4.0).reshape(1, 1, 2, 2)
    assert shuffle_patches(X, (1, 1), torch.tensor([2, 0, 3, 1])).flatten().tolist() == [2, 0, 3, 1]
    order = random_order(16, seed=5)
    X = torch.randn(2, 3, 8, 12)
    assert torch.equal(shuffle_patches(shuffle_patches(X, (2, 3), order), (2, 3), order.argsort()), X)


def predictor(model: ViT) -> Callable[[torch.Tensor, bool], torch.Tensor]:
    """What a test of the order of patches asks of a model."""
    return lambda X, positions: model(X, positions=positions).detach().softmax(dim=-1)


def test_shuffling_moves_an_answer_only_by_its_positions(model: ViT, picture: torch.Tensor) -> None:
    order = torch.tensor([3, 0, 1, 2])
    found = permutation_test(predictor(model), picture, (3, 3), order)
    torch.testing.assert_close(found.positions, model(picture)[0].softmax(dim=-1), atol=1e-6, rtol=0)
    shuffled = shuffle_patches(picture, (3, 3), order)
    torch.testing.assert_close(found.positions_shuffled, model(shuffled)[0].softmax(dim=-1), atol=1e-6, rtol=0)
    assert found.residual < 1e-6
    assert found.change > 1e-3
    with torch.no_grad():
        model.pos_embedding.zero_()
    assert permutation_test(predictor(model), picture, (3, 3), order).change < 1e-6


def test_orders_are_orders() -> None:
    assert sorted(random_order(49, seed=1).tolist()) == list(range(49))
    assert torch.equal(random_order(49, seed=1), random_order(49, seed=1))
    assert not torch.equal(random_order(49, seed=1), random_order(49, seed=2))


def test_similarity_of_positions() -> None:
    table = torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [1.0, 1.0]])[None]
    found = position_similarity(table, (2, 2))
    half = 2**-0.5
    torch.testing.assert_close(found[0, 0], torch.tensor([[1.0, 0.0], [-1.0, half]]))
    torch.testing.assert_close(found[1, 1], torch.tensor([[half, half], [-half, 1.0]]))


def test_principal_filters_span_the_filters() -> None:
    patterns = torch.linalg.qr(torch.randn(8, 2)).Q.T  # two patterns of 2 x 2 x 2 pixels
    weight = (torch.randn(20, 2) * torch.tensor([5.0, 0.5]) @ patterns).reshape(20, 2, 2, 2)
    found = principal_filters(weight, 2).reshape(2, 8)
    torch.testing.assert_close(found @ found.T, torch.eye(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.T @ found, patterns.T @ patterns, atol=1e-4, rtol=0)  # the same plane
    assert (weight.reshape(20, 8) @ found[0]).norm() > (weight.reshape(20, 8) @ found[1]).norm()
    assert (found.gather(1, found.abs().argmax(dim=1, keepdim=True)) > 0).all()


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_is_refused(model: ViT, picture: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="divide, got 6 x 6"):
        patchify(picture, (4, 4))
    with pytest.raises(ValueError, match="expected pictures of shape"):
        permutation_test(predictor(model), torch.zeros(1, 3, 6, 6), (3, 3), torch.arange(4))
    with pytest.raises(ValueError, match="expected 1 \\+ 2 x 3 positions, got 5"):
        position_similarity(model.pos_embedding, (2, 3))


def test_patches_embedded_by_a_product_and_by_a_convolution_agree() -> None:
    pixels, filters, bias = torch.randn(1, 3, 8, 12), torch.randn(5, 3, 4, 4), torch.randn(5)
    embedded = embed_patches(pixels, filters, bias)
    assert embedded.vectors.shape == (6, 48)
    assert embedded.tokens.shape == embedded.convolved.shape == (6, 5)
    assert embedded.error < 1e-5
    assert embedded._replace(tokens=embedded.tokens + 1).error > 1e-3
    assert book_shape() == (4, 36, 512)


def test_similarity_of_the_neighbours() -> None:
    similarity = torch.tensor([[1.0, 2.0, 4.0]])
    assert [neighbour_similarity(similarity, 0, column) for column in range(3)] == [2.0, 2.5, 2.0]
    assert neighbour_similarity(torch.tensor([[3.0]]), 0, 0) == 3.0
