"""Roles of heads: each pattern has its own, by hand, against the measures that define them, and against chance."""

import numpy as np
import pytest
import torch

from viz_core.maps.measures import diagonal_mass, induction_mass, key_mass, offset_mass
from viz_core.maps.register import COLUMNS, OFFSETS, ROLES, RoleTargets, beyond_chance, role_masses

TOKENS = ["[CLS]", "The", "cat", ",", "the", "dog", ".", "[SEP]"]


def named(masses: torch.Tensor) -> dict[str, list[float]]:
    return {role: masses[:, COLUMNS.index(column)].tolist() for role, column in ROLES.items()}


def test_each_role_is_the_measure_it_is_named_for() -> None:
    weights = torch.rand(3, 8, 8).softmax(dim=-1)
    found = named(role_masses(weights, RoleTargets.of(TOKENS, TOKENS, on_itself=True)))
    expected = {
        "previous": offset_mass(weights, -1),
        "next": offset_mass(weights, 1),
        "diagonal": diagonal_mass(weights),
        "first": key_mass(weights, [0]),
        "separator": key_mass(weights, [7]),
        "punctuation": key_mass(weights, [3, 6]),
        "same-word": (weights[:, 1, 4] + weights[:, 4, 1]) / 2,  # The and the
    }
    assert {role: found[role] for role in expected} == {
        role: pytest.approx(masses.tolist(), abs=1e-6) for role, masses in expected.items()
    }
    assert np.isnan(found["induction"]).all(), "no token comes twice as it is written"
    again = [*"abcab"]
    ours = named(role_masses(weights[:, :5, :5], RoleTargets.of(again, again, on_itself=True)))["induction"]
    assert ours == pytest.approx(induction_mass(weights[:, :5, :5], again).tolist())


def test_special_tokens_are_no_words() -> None:
    tokens = ["[CLS]", "the", "cat", "[SEP]", "the", "dog", "[SEP]"]
    targets = RoleTargets.of(tokens, tokens, on_itself=True)
    assert targets.masks["same-word"].nonzero().tolist() == [[1, 4], [4, 1]]
    same_word, separator = torch.zeros(2, 1, 7, 7)
    same_word[0, 1, 4] = same_word[0, 4, 1] = 1.0
    separator[0, 3, 6] = separator[0, 6, 3] = 1.0
    assert named(role_masses(same_word, targets))["same-word"] == [1.0]
    assert named(role_masses(separator, targets))["same-word"] == [0.0]


def test_offsets_are_measured_as_far_as_the_text_goes() -> None:
    weights = torch.eye(3).roll(2, dims=1)[None]  # 0 looks at 2, 1 at 0, 2 at 1
    found = role_masses(weights, RoleTargets.of([*"abc"], [*"abc"], on_itself=True))[0, : len(OFFSETS)]
    assert found[6:11].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]  # offsets -2 to 2
    assert found.isnan().nonzero().flatten().tolist() == [*range(6), *range(11, 17)]


def test_in_a_causal_map_no_role_asks_for_the_future() -> None:
    tokens = ["a", "b", "a"]
    causal, both = (RoleTargets.of(tokens, tokens, on_itself=True, causal=each) for each in (True, False))
    weights = torch.tensor([[[1.0, 0, 0], [0.5, 0.5, 0], [0.7, 0.2, 0.1]]])
    column = COLUMNS.index("same-word")
    assert role_masses(weights, causal)[0, column].item() == pytest.approx(0.7)
    assert role_masses(weights, both)[0, column].item() == pytest.approx(0.35)
    torch.testing.assert_close(causal.even[0], torch.tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))


def test_between_two_sequences_only_places_and_words_count() -> None:
    targets = RoleTargets.of(["Tom", "rit", "</s>"], ["tom", "laughs", ".", "</s>"], on_itself=False)
    weights = torch.tensor([[[0.6, 0.2, 0.1, 0.1], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]])
    found = {role: value[0] for role, value in named(role_masses(weights, targets)).items() if value[0] == value[0]}
    assert found == {
        "first": pytest.approx(0.2),
        "separator": pytest.approx(0.2),
        "punctuation": pytest.approx(0.2),
        "same-word": pytest.approx(0.6),
    }


def test_chance_is_taken_off() -> None:
    assert beyond_chance(0.25, 0.25) == 0.0
    assert beyond_chance(1.0, 0.25) == 1.0
    assert beyond_chance(0.5, 0.2) == pytest.approx(0.375)
    assert beyond_chance(1.0, 1.0) == 0.0, "where nothing else can be done, nothing was done"


def test_what_cannot_be_measured_is_refused(shapes_unchecked: None) -> None:
    with pytest.raises(ValueError, match="got 1 and 2"):
        RoleTargets.of(["a"], ["a", "b"], on_itself=True)
    with pytest.raises(ValueError, match="got 0 and 0"):
        RoleTargets.of([], [], on_itself=False)
    with pytest.raises(ValueError, match=r"maps of \(2, 2\) as the targets are, got \(3, 3\)"):
        role_masses(torch.zeros(1, 3, 3), RoleTargets.of([*"ab"], [*"ab"], on_itself=True))
