"""What uniform attention scores for each role, worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz_core.lessons.heads.uniform import uniform_masses


def test_shares_of_three_words_under_a_causal_mask() -> None:
    """Rows of the map: 1; 1/2, 1/2; 1/3, 1/3, 1/3."""
    found = uniform_masses(["a", "b", "a"], causal=True)
    expected = {"previous": (1 / 2 + 1 / 3) / 2, "next": 0.0, "diagonal": (1 + 1 / 2 + 1 / 3) / 3}
    expected |= {"first": (1 + 1 / 2 + 1 / 3) / 3, "same-word": 1 / 3, "induction": 1 / 3}
    assert found.keys() == expected.keys()
    for name, (mass, chance) in found.items():
        assert mass == pytest.approx(expected[name], abs=1e-6)
        assert chance == pytest.approx(expected[name], abs=1e-12)


@given(st.lists(st.sampled_from(["the", "cat", ".", ","]), min_size=1, max_size=12), st.booleans())
def test_what_is_measured_is_what_is_counted(words: list[str], causal: bool) -> None:
    for name, (mass, chance) in uniform_masses(words, causal).items():
        assert mass == pytest.approx(chance, abs=1e-6), name


def test_no_words_are_refused() -> None:
    with pytest.raises(ValueError, match="queries and keys"):
        uniform_masses([])
