"""Scores: why a root, masks that leak, and four functions on the same queries and keys."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.attention import masked_softmax
from viz_core.lessons.scoring_functions.mask_variants import (
    MASK_VARIANTS,
    MaskRun,
    gradient_without_delta,
    run_all,
    run_variant,
    weight_gradient,
    weight_gradient_by_formula,
    written_by_the_book,
)
from viz_core.lessons.scoring_functions.scaling import (
    QUANTILES,
    concatenation_error,
    dot_product_toy,
    dot_products,
    drop,
    gaussian_scores,
    gaussian_terms,
    measure_width,
    query_scores,
    sentence_weights,
    sharpness,
    to_one_length,
    variance_error_allowed,
)
from viz_core.lessons.scoring_functions.score_contest import (
    SCENES,
    book_example_error,
    contest,
    last_layer_input,
    the_books,
    word_scores,
)
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.token_vectors import sentence_tokens

VARIANTS = {variant.name: variant for variant in MASK_VARIANTS}
ROW = torch.tensor([0.0, 1.0, 7.0, -3.0])
HALF = ("book-float16",) * (torch.__version__ < "2.15")  # torch refuses numbers past its range from then on


def run(name: str, length: int, scores: torch.Tensor = ROW) -> MaskRun:
    return run_variant(VARIANTS[name], scores, length)


def test_every_variant_at_every_length() -> None:
    runs = run_all(ROW)
    assert list(runs) == [variant.name for variant in MASK_VARIANTS]
    assert all([r.length for r in row] == [0, 1, 2, 3, 4] for row in runs.values())
    verdicts = {name: [r.verdict for r in row] for name, row in runs.items()}
    assert verdicts == {
        "guarded-float32": ["fine"] * 5,
        "guarded-float16": ["fine"] * 5,
        "bare-float32": ["nan"] + ["fine"] * 4,
        "book-float32": ["leak"] + ["fine"] * 4,
        "book-float16": ["nan"] + ["fine"] * 4 if HALF else [*["refused"] * 3, "fine", "refused"],
        "filled-float16": ["refused"] * 5,
    }


@pytest.mark.parametrize("name", ["guarded-float32", "guarded-float16", "bare-float32", "book-float32", *HALF])
def test_the_published_row(name: str) -> None:
    weights = run(name, 2).weights
    assert weights is not None
    torch.testing.assert_close(weights, torch.tensor([0.2689, 0.7311, 0.0, 0.0]), atol=5e-4, rtol=0)


def test_an_empty_row_is_zeros_even_or_nan() -> None:
    rows = {name: run(f"{name}-float32", 0) for name in ("guarded", "book", "bare")}
    expected = {"guarded": [0.0] * 4, "book": [0.25] * 4, "bare": [math.nan] * 4}
    for name, row in rows.items():
        torch.testing.assert_close(row.weights, torch.tensor(expected[name]), equal_nan=True)
    assert (rows["book"].leak, math.isnan(rows["bare"].leak)) == (1.0, True)


@pytest.mark.parametrize("name", ["book-float32", *HALF, "bare-float32"])
def test_who_writes_into_the_input(name: str) -> None:
    before, writes = ROW.clone(), name.startswith("book")
    assert [run(name, length).wrote for length in range(5)] == [writes] * 4 + [False]  # nothing to mask at length 4
    assert torch.equal(ROW, before)  # only the copy it was given


def test_a_million_leaks_where_valid_scores_lie_lower() -> None:
    scores = torch.tensor([-2e7, 5e6, 1e7, 0.0])
    leaked = run("book-float32", 1, scores)
    assert leaked.verdict == "leak"
    assert leaked.leak == pytest.approx(1.0)
    assert leaked.weights is not None
    assert leaked.weights[0] == 0.0  # the one key it may see gets nothing
    assert run("guarded-float32", 1, scores).weights.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_scores_past_the_range_of_float16_are_not_blamed_on_the_mask() -> None:
    scores = torch.tensor([1e6, 2e6, 0.0])
    assert run("guarded-float16", 2, scores).verdict == "overflow"
    assert run("guarded-float32", 2, scores).verdict == "fine"


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 5), st.integers(0, 6))
def test_formula_and_differentiation_agree(queries: int, keys: int, key: int, length: int) -> None:
    key, length = key % keys, min(length, keys)
    scores, lengths = 3 * torch.randn(2, queries, keys), torch.tensor([length, keys])
    before = scores.clone()
    gradient = weight_gradient(scores, lengths, key)
    assert torch.equal(scores, before)
    torch.testing.assert_close(
        gradient, weight_gradient_by_formula(masked_softmax(scores, lengths), key), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(gradient.sum(dim=-1), torch.zeros(2, queries), atol=1e-6, rtol=0)
    assert torch.equal(gradient[0, :, length:], torch.zeros(queries, keys - length))
    assert float(gradient.max()) <= 0.25 + 1e-6


@pytest.mark.parametrize(("seed", "d"), [*enumerate([1, 2, 7, 64, 1024])])
def test_the_variance_is_the_width(seed: int, d: int) -> None:
    products = dot_products(d, 4096, seed)
    assert abs(float(products.var()) / d - 1) <= variance_error_allowed(d, 4096)
    assert abs(float(products.mean())) <= 6 * math.sqrt(d / 4096)


def test_sharpness_worked_by_hand() -> None:
    """Scores (ln 3, 0): weights 3/4 and 1/4, entropy 0.811278 bits; keys 1 apart: gradients 3/16 and -3/16."""
    one = sharpness(torch.tensor([[math.log(3.0), 0.0]]), torch.tensor([[[math.log(3.0)], [math.log(3.0) - 1]]]))
    assert one.entropy == pytest.approx(0.811278, abs=1e-6)
    assert one.largest == pytest.approx(0.75)
    assert one.median_gradient == pytest.approx(3 / 16 * math.sqrt(2))
    even = sharpness(torch.zeros(2, 8), torch.zeros(2, 8, 1))
    assert (even.entropy, even.largest) == (pytest.approx(3.0), pytest.approx(0.125))


@pytest.mark.parametrize("d", [1, 3])
def test_scores_in_a_row_share_their_query(d: int) -> None:
    """Given its query, a row has variance |q|^2; were its pairs independent, every row would have variance d."""
    scores, _ = query_scores(d, 400, 4000, seed=1)
    queries = torch.randn(400, 1, d, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(scores.var(dim=1), queries.square().sum(dim=(1, 2)), rtol=0.15, atol=0)
    assert float(scores.var(dim=1).min()) < 0.5 * d < 2 * d < float(scores.var(dim=1).max())


@pytest.mark.parametrize("divisor", [1.0, 2.0])
def test_the_gradient_that_reaches_a_query_is_torch_s(divisor: float) -> None:
    generator = torch.Generator().manual_seed(5)
    query, keys = torch.randn(4, generator=generator), torch.randn(6, 4, generator=generator)
    jacobian = torch.autograd.functional.jacobian(lambda q: (keys @ q / divisor).softmax(dim=0), query)
    made = sharpness((keys @ query)[None], keys[None], divisor)
    assert made.median_gradient == pytest.approx(float(jacobian.norm()), rel=1e-5)


def test_worked_by_hand() -> None:
    """q = (1, 2), k = (3, -1): q . k = 1, -1/2 |k|^2 = -5, -1/2 |q|^2 = -2.5, and -1/2 |q - k|^2 = -6.5."""
    terms = gaussian_terms(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]]))
    assert (terms.product.item(), terms.key_term.item(), terms.query_term.item()) == (1.0, -5.0, -2.5)
    assert terms.total().item() == -6.5
    assert gaussian_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])).item() == -6.5


@settings(max_examples=30)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 7))
def test_the_terms_add_up_and_the_querys_cancels(n: int, m: int, d: int) -> None:
    queries, keys = torch.randn(n, d, dtype=torch.float64), torch.randn(m, d, dtype=torch.float64)
    terms = gaussian_terms(queries, keys)
    torch.testing.assert_close(terms.total(), gaussian_scores(queries, keys))
    whole = torch.softmax(gaussian_scores(queries, keys), dim=-1)
    torch.testing.assert_close(torch.softmax(terms.product + terms.key_term, dim=-1), whole)


def test_the_keys_own_term_does_not_cancel_unless_all_are_of_one_length() -> None:
    queries, keys = torch.randn(3, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    difference = torch.softmax(gaussian_scores(queries, keys), -1) - torch.softmax(
        gaussian_terms(queries, keys).product, -1
    )
    assert difference.abs().max() > 0.05
    alike = to_one_length(keys)
    torch.testing.assert_close(alike.norm(dim=1), keys.square().sum(dim=1).mean().sqrt().expand(5))
    torch.testing.assert_close(
        torch.softmax(gaussian_scores(queries, alike), -1), torch.softmax(gaussian_terms(queries, alike).product, -1)
    )


def test_equal_keys_give_the_mean_of_what_may_be_seen() -> None:
    toy = dot_product_toy(equal_keys=True)
    assert toy.output.shape == (2, 1, 4)
    assert toy.output.flatten().tolist() == pytest.approx([2, 3, 4, 5, 10, 11, 12, 13])
    torch.testing.assert_close(toy.dropped, toy.weights)
    rows = [[0.25] * 4, [1 / 3] * 3 + [0], [0.5, 0.5, 0, 0]]  # three sentences
    assert sentence_weights().tolist() == [pytest.approx(row) for row in rows]
    random = dot_product_toy(equal_keys=False)
    assert float(random.weights[1, :6].max()) > 0.2
    assert not random.weights[0, 2:].any()


def test_additive_attention_is_a_network_on_the_concatenation() -> None:
    assert concatenation_error() < 1e-6


def test_masks_done_wrong() -> None:
    scores = torch.tensor([[[1.0, 2.0, 3.0]]])
    assert written_by_the_book(scores, torch.tensor([2])) == pytest.approx(1e6 + 3)
    assert written_by_the_book(scores, None) == 0
    assert scores.tolist() == [[[1, 2, 3]]]  # a copy
    weights = scores.softmax(dim=-1)
    assert (gradient_without_delta(weights, 1) < 0).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_dot_products_find_what_is_alike_and_lose_what_was_turned(seed: int) -> None:
    alike, lost = (contest(SCENES[name](seed), 8, 0) for name in ("alike", "turned"))
    assert alike["dot"].found == alike["scaled"].found == 1.0
    assert lost["dot"].found < 0.7
    assert lost["dot"].found == lost["scaled"].found


@pytest.mark.parametrize(("seed", "name"), [*enumerate(["alike", "turned", "widths"])])
def test_general_and_additive_learn_what_belongs_together(seed: int, name: str) -> None:
    entries = contest(SCENES[name](seed), 16, 300, seed)
    for learned in ("general", "additive"):
        assert entries[learned].found == 1.0
        weights = entries[learned].weights
        assert weights is not None
        assert float(weights[0].diagonal().mean()) > 0.6


def test_the_books_keys_are_alike_so_every_score_spreads_evenly() -> None:
    entries = contest(the_books(), 8, 0)
    expected = torch.tensor([[[0.5] * 2 + [0.0] * 8], [[1 / 6] * 6 + [0.0] * 4]])
    for name in ("general", "additive"):
        weights = entries[name].weights
        assert weights is not None
        torch.testing.assert_close(weights, expected)
        assert math.isnan(entries[name].found)
    assert book_example_error() < 1e-5


def test_the_weights_are_those_of_the_encoders_last_layer() -> None:
    model = load_translator("transformer-en-fr", "cpu")
    text = next(sample.english for sample in sentences() if sample.id == "cat")
    encoder = model.model.encoder
    tokens = sentence_tokens(text, 24, 256, model, ended=True)
    translation = model.translate(text)
    assert tokens.labels == translation.source_tokens
    X = last_layer_input(encoder, tokens.X)
    for head in range(8):
        made = word_scores(encoder.blocks[-1].attention, X, head)
        recorded = translation.trace["encoder.2.self"].weights(head=head)[0]
        for query in range(len(tokens.labels)):
            assert made.weights(query).numpy() == pytest.approx(recorded[query].numpy(), abs=1e-5)


def test_quantiles_and_dropout_of_a_sample() -> None:
    width, products = measure_width(16, 8, 4096, seed=3), dot_products(16, 4096, 3)
    for share, quantile in zip(QUANTILES, width.quantiles, strict=True):
        assert float((products <= quantile).float().mean()) == pytest.approx(share, abs=1e-3)
    dropped = drop(torch.full((2000, 4), 0.25), 0.5, torch.Generator().manual_seed(0))
    assert set(dropped.unique().tolist()) == {0.0, 0.5}
    assert float(dropped.mean()) == pytest.approx(0.25, abs=0.02)
