"""Layers that are compared, and patches of pictures, by loops and numbers by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from einops import rearrange
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from viz_core.lessons.architectures import (
    ARCHITECTURES,
    Convolution,
    LayerSizes,
    RestrictedSelfAttention,
    build_layer,
    crossover,
    layer_cost,
    path_length,
    pooled_residual,
    shuffled_residual,
    signal_strength,
)
from viz_core.lessons.vision_transformer import (
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


@pytest.mark.parametrize("n", [1, 4, 5, 13])
@pytest.mark.parametrize(("window", "heads"), [(1, 1), (4, 2), (5, 1), (40, 2)])
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
def test_only_self_attention_is_blind_to_order(name: str) -> None:
    X, order = torch.randn(9, 8), torch.tensor([3, 0, 8, 1, 2, 7, 6, 5, 4])
    layer = build_layer(name, LayerSizes(9, 8, 3, 3), depth=1)
    residual, pooled = shuffled_residual(layer, X, order), pooled_residual(layer, X, order)
    if name == "attention":
        assert max(residual, pooled) < 1e-6
    else:
        assert residual > 1e-3
    assert shuffled_residual(layer, X, torch.arange(9)) == 0


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


def test_similarity_of_positions() -> None:
    table = torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [1.0, 1.0]])[None]
    found = position_similarity(table, (2, 2))
    half = 2**-0.5
    torch.testing.assert_close(found[0, 0], torch.tensor([[1.0, 0.0], [-1.0, half]]))
    torch.testing.assert_close(found[1, 1], torch.tensor([[half, half], [-half, 1.0]]))
    assert neighbour_similarity(torch.tensor([[1.0, 2.0, 4.0]]), 0, 1) == 2.5


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
