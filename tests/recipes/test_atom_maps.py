"""Scores of atom maps by hand, and what is recorded of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from recipes.atom_maps import interval, mark, score
from recipes.reactions import TWENTY, MappedReaction
from viz_core.hub import load_hub
from viz_core.lab.atom_maps import head_weights, read_reaction, strongest_atoms
from viz_core.runtime.assets import ASSETS


def ester() -> MappedReaction:
    """Ethanol and chloromethane with a water: C C O, C Cl, O >> C C O C; the two atoms of ethane would be alike."""
    reaction = read_reaction("CCO.CCl.O>>CCOC")
    truth = np.array([0, 1, 2, 3])
    equivalent = np.zeros((4, 6), dtype=bool)
    equivalent[np.arange(4), truth] = True
    equivalent[0, 1] = equivalent[1, 0] = True  # as if symmetry made the two carbons one
    goes_on = np.array([True, True, True, True, False, False])
    takes_part = np.array([True, True, True, True, True, False])
    return MappedReaction("", reaction, truth, equivalent, goes_on, takes_part)


def test_atoms_are_marked_up_to_symmetry_and_errors_sorted() -> None:
    forward = np.zeros((1, 2, 4, 6))
    forward[0, 0, np.arange(4), [0, 1, 2, 3]] = 1  # the first head is right
    forward[0, 1, np.arange(4), [1, 1, 5, 0]] = 1  # equivalent, right, the reagent's oxygen, another carbon
    marks = mark(ester(), forward, np.zeros_like(forward), (0, 1))
    assert (marks.atoms, marks.heads.tolist(), marks.exact.tolist()) == (4, [[4, 2]], [[4, 1]])
    # carbons: 3 in the reactants, of which 2, 2 and 1 are right; oxygens: 2, of which 1 is
    assert marks.chance == pytest.approx(2 / 3 + 2 / 3 + 1 / 2 + 1 / 3)
    assert dict(marks.kinds) == {"symmetry": 1, "reagent": 1, "other-atom": 1}
    found = score([marks, marks])
    assert (found["best"], found["atoms"], found["reactions"]) == ([0, 0], 8, 2)
    assert found["table"]["best"]["reactions"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert found["table"]["both-directions"]["atoms"]["mean"] == 0.5
    assert found["errors"] == {"symmetry": 2, "leaving-group": 0, "reagent": 2, "other-atom": 2, "none": 0}


def test_the_interval_is_over_reactions() -> None:
    """A reaction of one atom, wrong, and one of three, right: 3 of 4, between 0 and 1."""
    assert interval(np.array([0, 3]), np.array([1, 3])) == {"mean": 0.75, "low": 0.0, "high": 1.0}


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return json.loads((ASSETS / "atoms" / "reactions.json").read_text(encoding="utf-8"))


def test_recorded_weights_are_those_of_the_model(recorded: dict[str, Any]) -> None:
    model = load_hub("rxnmapper", device="cpu")
    for version in recorded["reactions"]["suzuki"].values():
        weights = head_weights(model, version["smiles"], *recorded["head"])
        np.testing.assert_allclose(weights, version["weights"], atol=0.002)
        assert sum(len(each["atoms"]) for each in version["molecules"]) == sum(weights.shape)


def test_all_twenty_are_recorded_with_as_many_right_atoms_as_are_scored(recorded: dict[str, Any]) -> None:
    assert list(recorded["reactions"]) == list(TWENTY)
    right = 0
    for versions in recorded["reactions"].values():
        entry = versions["canonical"]
        found = strongest_atoms(np.array(entry["weights"]), read_reaction(entry["smiles"])).tolist()
        right += sum(atom in truth for atom, truth in zip(found, entry["truth"], strict=True))
    scores = recorded["scores"]
    assert right == pytest.approx(scores["table"]["best"]["atoms"]["mean"] * scores["atoms"], abs=0.5)
