"""Recurrent, multi-head, convolutional and restricted layers, and patches, by loops and by hand."""

import math

import pytest
import torch
from einops import rearrange
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from viz_core.attention import AdditiveAttention, DotProductAttention, MultiHeadAttention
from viz_core.lessons import multi_head
from viz_core.lessons.architectures import (
    ARCHITECTURES,
    Convolution,
    LayerSizes,
    RestrictedSelfAttention,
    build_layer,
    layer_cost,
    pooled_residual,
    shuffled_residual,
)
from viz_core.lessons.bahdanau import decoder_steps, weights_by_formula
from viz_core.lessons.heads import uniform_masses
from viz_core.lessons.vision_transformer import patchify, unpatchify
from viz_core.models import PatchEmbedding, TransformerEncoderBlock, ViT
from viz_core.pretrained import Translator, build_translation_model

SIZES = {"embed_size": 12, "num_hiddens": 12, "num_layers": 2, "dropout": 0.0}


def recurrent(translator: Translator, architecture: str) -> Translator:
    """An untrained recurrent model behind the tiny Transformer's tokenizer."""
    vocab_size = translator.tokenizer.get_vocab_size()
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = build_translation_model({"architecture": architecture, "vocab_size": vocab_size, **SIZES})
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.7)  # far from uniform weights
    return Translator(translator.card, model.eval().requires_grad_(False), translator.tokenizer, translator.device)


@pytest.fixture(scope="module")
def attends(translator: Translator) -> Translator:
    return recurrent(translator, "seq2seq-attention")


@pytest.mark.parametrize("architecture", ["seq2seq-attention", "rnnsearch"])
def test_steps_are_those_of_the_recorded_pass(architecture: str, translator: Translator) -> None:
    attends = recurrent(translator, architecture)
    result = attends.translate("Where is the cat?", max_new_tokens=7)
    steps = decoder_steps(attends, result)
    recorded = result.trace["decoder.0.cross"].weights(head=0)[0]
    torch.testing.assert_close(steps.weights, recorded, atol=1e-6, rtol=0)
    assert float((recorded.max(dim=-1).values - 1 / recorded.shape[1]).min()) > 0.02  # not uniform: the test can fail
    torch.testing.assert_close(weights_by_formula(attends, result, steps).float(), recorded, atol=1e-5, rtol=0)
    outputs = attends.model.encoder(torch.tensor([result.source_ids]))[0]
    torch.testing.assert_close(steps.contexts, steps.weights @ outputs[0], atol=1e-6, rtol=0)
    chosen = steps.probabilities[range(len(result.target_ids)), list(result.target_ids)]
    assert float(chosen.log().sum()) == pytest.approx(result.log_probability, abs=1e-3)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["the", "cat", ".", ","]), min_size=1, max_size=12), st.booleans())
def test_what_is_measured_is_what_is_counted(words: list[str], causal: bool) -> None:
    for name, (mass, chance) in uniform_masses(words, causal).items():
        assert mass == pytest.approx(chance, abs=1e-6), name


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_steps_layer_and_torch_agree_for_any_size(heads: int, width: int, n: int, batch: int, bias: bool) -> None:
    layer, X = MultiHeadAttention(heads * width, heads, bias=bias), torch.randn(batch, n, heads * width)
    steps = multi_head.multi_head_steps(layer, X)
    assert max(*multi_head.residuals(layer, steps), multi_head.walk_residual(layer, steps)) < 1e-6


def test_the_book_s_shapes_and_every_entry_by_loop() -> None:
    """The book: 100 hidden units, 5 heads, 2 sequences of 4 tokens."""
    layer, X = MultiHeadAttention(100, 5), torch.randn(2, 4, 100)
    steps = multi_head.multi_head_steps(layer, X)
    assert {name: tuple(tensor.shape) for name, tensor in steps.tensors().items()} == {
        **dict.fromkeys(("input", "queries", "keys", "values", "concatenated", "output"), (2, 4, 100)),
        **dict.fromkeys(("split_queries", "split_keys", "split_values", "attended"), (2, 5, 4, 20)),
        **dict.fromkeys(("scores", "masked", "exponentials", "weights"), (2, 5, 4, 4)),
    }
    for b in range(2):
        for h in range(5):
            own = slice(20 * h, 20 * h + 20)
            q, k, v = (X[b] @ linear.weight[own].T for linear in (layer.W_q, layer.W_k, layer.W_v))
            torch.testing.assert_close(steps.split_queries[b, h], q, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.split_keys[b, h], k, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.split_values[b, h], v, atol=1e-5, rtol=0)
            weights = torch.softmax(q @ k.T / 20**0.5, dim=-1)
            torch.testing.assert_close(steps.weights[b, h], weights, atol=1e-6, rtol=0)
            torch.testing.assert_close(steps.attended[b, h], weights @ v, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.concatenated[b, :, own], weights @ v, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.softmax(steps.scores, -1), steps.weights, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("layer", "inputs", "shape"),
    [
        (TransformerEncoderBlock(24, 48, 8, 0.5), [(2, 100, 24)], (2, 100, 24)),
        (PatchEmbedding(96, 16, 512), [(4, 3, 96, 96)], (4, 36, 512)),
        (AdditiveAttention(20, 2, 8), [(2, 1, 20), (2, 10, 2), (2, 10, 4)], (2, 1, 4)),
        (DotProductAttention(), [(2, 1, 2), (2, 10, 2), (2, 10, 4)], (2, 1, 4)),
    ],
)
def test_shapes_are_the_book_s(layer: nn.Module, inputs: list[tuple[int, ...]], shape: tuple[int, ...]) -> None:
    assert layer(*map(torch.ones, inputs)).shape == shape


def test_by_hand() -> None:
    """d = 64, n = 10: 4 d^2 = 16,384, 4 n d^2 = 163,840, 2 n^2 d = 12,800, h n^2 = 800."""
    cost = multi_head.multi_head_cost(10, 64, 8)
    assert (cost.parameters, cost.projections, cost.products, cost.weights) == (16_384, 163_840, 12_800, 800)
    assert cost.multiplications == 176_640


def test_ranges_without_separators_leave_them_out_as_queries_and_as_keys() -> None:
    """Half of every row on the full stop: with it the head looks far, among words alone at itself."""
    weights = torch.eye(4) / 2
    weights[:, 3] += 0.5
    assert float(multi_head.mean_ranges(weights[None])[0]) == pytest.approx((1.5 + 1 + 0.5) / 4)
    assert float(multi_head.mean_ranges(weights[None], [0, 1, 2])[0]) == 0
    assert multi_head.uniform_range([0, 1, 3]) == pytest.approx((1 + 3 + 2) * 2 / 9)
    tokens = ["The", "children", "'", "s", "<eos>", ".", "9"]
    assert [token for token in tokens if multi_head.is_separator(token)] == ["'", "<eos>", "."]


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
