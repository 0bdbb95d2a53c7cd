"""Names looked up exactly, approximately and softly, and what weights of a sum can be."""

import math
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from viz_core.lessons.queries_keys_values import (
    BOOK_DATABASE,
    approximate_lookup,
    beginning_distance,
    edit_distance,
    embed_words,
    exact_lookup,
    first_weights,
    identity_error,
    letter_features,
    similarity,
    smallest_gradient,
    soft_lookup,
    top_lookup,
    two_keys,
    uniform_error,
)
from viz_core.trace import record

KEYS = [key for key, _ in BOOK_DATABASE]
VALUES = [value for _, value in BOOK_DATABASE]


def values(places: list[int]) -> list[str]:
    return [VALUES[place] for place in places]


def test_exactly_li_is_mu() -> None:
    assert values(exact_lookup("Li", KEYS)) == ["Mu"]
    assert exact_lookup("li", KEYS) == exact_lookup("Lip", KEYS) == []
    assert exact_lookup("a", ["a", "b", "a"]) == [0, 2]


def test_approximately_li_is_zachary_too() -> None:
    found = approximate_lookup("Li", KEYS, 1, beginning_distance)
    assert [(VALUES[place], edits) for place, edits in found] == [("Mu", 0), ("Zachary", 0)]
    without_li = [key for key in KEYS if key != "Li"]
    assert [without_li[f.place] for f in approximate_lookup("Li", without_li, 1, beginning_distance)] == ["Lipton"]


def test_letters_and_pairs_by_hand() -> None:
    assert letter_features("Li") == {"l": 1, "i": 1, "^l": 1, "li": 1, "i$": 1}
    assert letter_features("aa") == {"a": 2, "^a": 1, "aa": 1, "a$": 1}
    # Li has 5 features, Lipton 13, and they share l, i, ^l and li
    assert similarity(["Li"], KEYS)[0].tolist() == pytest.approx([0, 4 / math.sqrt(65), 1, 1 / math.sqrt(55), 0, 0])


def test_soft_lookup_goes_through_the_one_door() -> None:
    with record() as trace:
        weights = soft_lookup(["Li", "Hu"], KEYS, 0.2)
    assert trace.sites == ("names.lookup",)
    torch.testing.assert_close(trace["names.lookup"].weights()[0, 0], weights.float(), rtol=0, atol=1e-6)


@settings(max_examples=30)
@given(words=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6), temperature=st.floats(0.01, 1000))
def test_rows_sum_to_one_for_any_words(words: list[str], temperature: float) -> None:
    weights = soft_lookup(words, words, temperature)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(words), dtype=torch.float64))
    torch.testing.assert_close(embed_words(words).norm(dim=1), torch.ones(len(words), dtype=torch.float64))
    assert (weights.diagonal() >= weights.max(dim=1).values - 1e-12).all()  # nothing is more like a word than itself


def test_the_best_keys_and_those_that_misspelled_names_find() -> None:
    assert [place for place, _ in top_lookup("Li", ["Hu", "Lipton", "Li", "Li"], 3)] == [2, 3, 1]
    wanted = {"Lipten": "Lipton", "li": "Li"}
    weights = soft_lookup(list(wanted), KEYS, 0.2)
    assert first_weights(wanted, KEYS, 0.2) == [float(weights[0, 1]), float(weights[1, 2])]
    assert first_weights(wanted, [*KEYS, "Lipten"], 0.2) is None  # no misspelling here
    assert first_weights({"Liptons": "Li"}, KEYS, 0.2) is None  # Lipton is nearer


def test_from_one_hot_to_an_average() -> None:
    assert identity_error(KEYS, 0.01) < 1e-20
    assert identity_error(KEYS, 100) == pytest.approx(5 / 6, abs=0.01)
    assert uniform_error("Li", KEYS, 1e6) < 1e-6
    assert uniform_error("Li", KEYS, 0.01) == pytest.approx(5 / 6, abs=1e-6)
    for twice in ([*KEYS, "Li"], ["li", "LI"]):  # capitals are small ones here
        assert identity_error(twice, 0.01) == pytest.approx(0.5)


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


def test_the_smallest_gradient_is_that_of_autograd() -> None:
    keys = ["Zhang", "Lipton", "Li"]
    scores = similarity(["Li"], keys)[0].requires_grad_()
    jacobian = torch.autograd.functional.jacobian(lambda s: (s / 0.2).softmax(dim=0), scores)
    assert smallest_gradient("Li", keys, 0.2) == pytest.approx(float(jacobian.diagonal().min()), rel=1e-9)
