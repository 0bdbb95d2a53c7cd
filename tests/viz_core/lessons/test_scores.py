"""Scores, masks that leak, names looked up, and curves fitted by kernels, by hand and against loops."""

import math
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from viz_core.attention import masked_softmax
from viz_core.attention.kernel_pooling import KERNELS, gaussian, nadaraya_watson, with_width
from viz_core.lessons.attention_pooling import (
    Fit,
    book_curve,
    even_queries,
    gaussian_pooling_as_attention,
    learn_width,
    leave_one_out,
    noisy_points,
    range_excess,
    shares,
    sum_error,
)
from viz_core.lessons.queries_keys_values import (
    BOOK_DATABASE,
    edit_distance,
    embed_words,
    exact_lookup,
    letter_features,
    similarity,
    soft_lookup,
    two_keys,
)
from viz_core.lessons.scoring_functions import mask_variants
from viz_core.lessons.scoring_functions.scaling import gaussian_scores, gaussian_terms, sharpness
from viz_core.lessons.scoring_functions.score_contest import book_example_error, contest, the_books

VARIANTS = {variant.name: variant for variant in mask_variants.MASK_VARIANTS}
ROW = torch.tensor([0.0, 1.0, 7.0, -3.0])
HALF = ("book-float16",) * (torch.__version__ < "2.15")  # torch refuses numbers past its range from then on


def run(name: str, length: int, scores: torch.Tensor = ROW) -> mask_variants.MaskRun:
    return mask_variants.run_variant(VARIANTS[name], scores, length)


def test_every_variant_at_every_length() -> None:
    runs = mask_variants.run_all(ROW)
    assert list(runs) == [variant.name for variant in mask_variants.MASK_VARIANTS]
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


def test_a_million_leaks_where_valid_scores_lie_lower() -> None:
    scores = torch.tensor([-2e7, 5e6, 1e7, 0.0])
    leaked = run("book-float32", 1, scores)
    assert leaked.verdict == "leak"
    assert leaked.leak == pytest.approx(1.0)
    assert leaked.weights is not None
    assert leaked.weights[0] == 0.0  # the one key it may see gets nothing
    assert run("guarded-float32", 1, scores).weights.tolist() == [1.0, 0.0, 0.0, 0.0]


@settings(max_examples=40)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 5), st.integers(0, 6))
def test_formula_and_differentiation_agree(queries: int, keys: int, key: int, length: int) -> None:
    key, length = key % keys, min(length, keys)
    scores, lengths = 3 * torch.randn(2, queries, keys), torch.tensor([length, keys])
    before = scores.clone()
    gradient = mask_variants.weight_gradient(scores, lengths, key)
    assert torch.equal(scores, before)
    torch.testing.assert_close(
        gradient, mask_variants.weight_gradient_by_formula(masked_softmax(scores, lengths), key), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(gradient.sum(dim=-1), torch.zeros(2, queries), atol=1e-6, rtol=0)
    assert torch.equal(gradient[0, :, length:], torch.zeros(queries, keys - length))
    assert float(gradient.max()) <= 0.25 + 1e-6


def test_sharpness_worked_by_hand() -> None:
    """Scores (ln 3, 0): weights 3/4 and 1/4, entropy 0.811278 bits; keys 1 apart: gradients 3/16 and -3/16."""
    one = sharpness(torch.tensor([[math.log(3.0), 0.0]]), torch.tensor([[[math.log(3.0)], [math.log(3.0) - 1]]]))
    assert one.entropy == pytest.approx(0.811278, abs=1e-6)
    assert one.largest == pytest.approx(0.75)
    assert one.median_gradient == pytest.approx(3 / 16 * math.sqrt(2))
    even = sharpness(torch.zeros(2, 8), torch.zeros(2, 8, 1))
    assert (even.entropy, even.largest) == (pytest.approx(3.0), pytest.approx(0.125))


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


def test_the_books_keys_are_alike_so_every_score_spreads_evenly() -> None:
    entries = contest(the_books(), 8, 0)
    expected = torch.tensor([[[0.5] * 2 + [0.0] * 8], [[1 / 6] * 6 + [0.0] * 4]])
    for name in ("general", "additive"):
        weights = entries[name].weights
        assert weights is not None
        torch.testing.assert_close(weights, expected)
        assert math.isnan(entries[name].found)
    assert book_example_error() < 1e-5


def make_fit(kernel: str, width: float) -> Fit:
    x, y = noisy_points(20)
    queries = even_queries(51)
    y_hat, weights = nadaraya_watson(x, y, queries, with_width(KERNELS[kernel], width))
    return Fit("", x, y, queries, book_curve(queries), y_hat, weights)


def test_gaussian_pooling_is_attention_of_its_own_width_alone() -> None:
    fit = make_fit("gaussian", 0.5)
    own, wider = (gaussian_pooling_as_attention(fit.x_train, fit.y_train, fit.x_val, width) for width in (0.5, 0.6))
    assert float((own - fit.y_hat).abs().max()) < 1e-10
    assert float((wider - fit.y_hat).abs().max()) > 0.01
    assert sum_error(fit) < 1e-12
    assert math.isnan(sum_error(make_fit("boxcar", 0.05), unguarded=True))
    assert range_excess(torch.tensor([0.5, 3.25]), torch.tensor([1.0, 3.0])) == 0.5


def test_shares_of_two_points_by_hand() -> None:
    points, labels = torch.tensor([[0.0, 0.0], [2.0, 0.0]], dtype=torch.float64), torch.tensor([0, 1])
    queries = torch.tensor([[0.0, 0.0], [1.0, 5.0]], dtype=torch.float64)
    share = 1 / (1 + math.exp(-0.5 * 4))
    found = shares(points, labels, queries, (1.0, 3.0))
    assert found.flatten().tolist() == pytest.approx([share, 1 - share, 0.5, 0.5])
    assert float(shares(points, labels, queries, (2.0, 3.0))[0, 0]) == pytest.approx(1 / (1 + math.exp(-0.5)))


GRID = torch.logspace(-1.7, 1, 28, dtype=torch.float64)


def by_refits(x: Tensor, y: Tensor, kernel) -> list[float]:
    """Fit again without each point."""
    errors = []
    for i in range(len(x)):
        rest = torch.arange(len(x)) != i
        y_hat, _ = nadaraya_watson(x[rest], y[rest], x[i : i + 1], kernel)
        errors.append(float(y[i] - y_hat))
    return errors


@settings(max_examples=40)
@given(
    n=st.integers(2, 12),
    seed=st.integers(0, 99),
    name=st.sampled_from(sorted(KERNELS)),
    width=st.sampled_from([0.05, 0.5, 3.0]),
)
def test_against_refits(n: int, seed: int, name: str, width: float) -> None:
    x, y = noisy_points(n, 1.0, seed)
    kernel = with_width(KERNELS[name], width)
    refits = torch.tensor(by_refits(x, y, kernel), dtype=torch.float64)
    torch.testing.assert_close(leave_one_out(x, y, kernel), refits, equal_nan=True, rtol=1e-9, atol=1e-9)


def test_the_learned_width_beats_every_width_tried() -> None:
    x, y = noisy_points(40, 1.0, 3)
    search = learn_width(x, y, gaussian(), GRID)
    fine = torch.logspace(-1.5, 0.5, 400, dtype=torch.float64)
    errors = [float(leave_one_out(x, y, gaussian(float(w))).square().mean()) for w in fine]
    assert search.error <= min(errors) + 1e-6
    assert search.best == pytest.approx(float(fine[errors.index(min(errors))]), rel=0.02)
    again = float(leave_one_out(x, y, gaussian(search.best)).square().mean())
    assert search.error == pytest.approx(again, abs=1e-12)
    assert search.error <= float(search.errors.min())


KEYS = [key for key, _ in BOOK_DATABASE]
VALUES = [value for _, value in BOOK_DATABASE]


def values(places: list[int]) -> list[str]:
    return [VALUES[place] for place in places]


def test_exactly_li_is_mu() -> None:
    assert values(exact_lookup("Li", KEYS)) == ["Mu"]
    assert exact_lookup("li", KEYS) == exact_lookup("Lip", KEYS) == []
    assert exact_lookup("a", ["a", "b", "a"]) == [0, 2]


def test_letters_and_pairs_by_hand() -> None:
    assert letter_features("Li") == {"l": 1, "i": 1, "^l": 1, "li": 1, "i$": 1}
    assert letter_features("aa") == {"a": 2, "^a": 1, "aa": 1, "a$": 1}
    # Li has 5 features, Lipton 13, and they share l, i, ^l and li
    assert similarity(["Li"], KEYS)[0].tolist() == pytest.approx([0, 4 / math.sqrt(65), 1, 1 / math.sqrt(55), 0, 0])


@settings(max_examples=30)
@given(words=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6), temperature=st.floats(0.01, 1000))
def test_rows_sum_to_one_for_any_words(words: list[str], temperature: float) -> None:
    weights = soft_lookup(words, words, temperature)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(words), dtype=torch.float64))
    torch.testing.assert_close(embed_words(words).norm(dim=1), torch.ones(len(words), dtype=torch.float64))
    assert (weights.diagonal() >= weights.max(dim=1).values - 1e-12).all()  # nothing is more like a word than itself


words = st.text(alphabet="abc", max_size=5)


@cache
def by_recursion(a: str, b: str) -> int:
    """Levenshtein's definition, without a table."""
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return by_recursion(a[1:], b[1:])
    return 1 + min(by_recursion(a[1:], b), by_recursion(a, b[1:]), by_recursion(a[1:], b[1:]))


@given(a=words, b=words)
def test_against_recursion(a: str, b: str) -> None:
    assert edit_distance(a, b) == by_recursion(a, b)


def test_two_keys_by_hand() -> None:
    soft, hard, slope = two_keys(torch.tensor([-1.0, 0.0, math.log(3)], dtype=torch.float64), 1.0)
    assert soft.tolist() == pytest.approx([1 / (1 + math.e), 0.5, 0.75])
    assert hard.tolist() == [0, 0, 1]
    assert slope.tolist()[1:] == pytest.approx([0.25, 3 / 16])
