"""Scores of atom maps by hand, and what is recorded of them."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from recipes.atom_maps import KINDS, heads_off, interval, mark, score
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
    wrong = {"symmetry": 1, "leaving-group": 0, "reagent": 1, "other-atom": 1, "none": 0}
    assert (marks.atoms, marks.heads.tolist()) == (4, [[[0] * 5, [*wrong.values()]]])
    # carbons: 3 in the reactants, of which 2, 2 and 1 are right; oxygens: 2, of which 1 is; the other is a reagent's
    np.testing.assert_allclose(marks.others["chance"], [2 / 3, 0, 1 / 2, 1 / 3 + 1 / 3 + 2 / 3, 0])
    found = score([marks, marks], (0, 1))
    table, every = found["table"], {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert (found["places"]["best"], found["atoms"], found["reactions"]) == ([0, 0], 8, 2)
    assert table["best"]["reactions"] == every
    assert table["chance"]["atoms"]["mean"] == pytest.approx((2 / 3 + 2 / 3 + 1 / 2 + 1 / 3) / 4, abs=1e-4)
    assert table["both-directions"]["atoms"]["mean"] == table["read"]["atoms"]["mean"] == 0.5
    assert table["read"]["reactions"]["mean"] == 0
    assert {kind: table["read"][kind]["mean"] * 4 for kind in KINDS} == wrong
    assert (found["heads"]["mean"], found["exact"]["mean"]) == ([[1.0, 0.5]], [[1.0, 0.25]])


def test_an_atom_is_of_a_leaving_group_or_none() -> None:
    """Chlorine is in no reactant; the second carbon of chloroethane leaves."""
    reaction = read_reaction("CC>>CCl")
    equivalent = np.array([[True, False], [False, False]])
    found = MappedReaction("", reaction, np.array([0, 0]), equivalent, np.array([True, False]), np.ones(2, dtype=bool))
    weights = np.array([[[[0.0, 1.0], [1.0, 0.0]]]])
    marks = mark(found, weights, weights, (0, 0))
    assert marks.heads.tolist() == [[[0, 1, 0, 0, 1]]]
    assert marks.others["chance"].tolist() == [0, 0.5, 0, 0, 1]


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


def test_what_switching_heads_off_costs_is_that_of_the_model(recorded: dict[str, Any]) -> None:
    smiles = [versions["canonical"]["smiles"] for versions in recorded["reactions"].values()]
    other = recorded["scores"]["places"]["other-head"][1]
    found = heads_off(load_hub("rxnmapper", device="cpu"), smiles, tuple(recorded["head"]), other)
    assert list(found) == list(recorded["off"])
    for name, shown in recorded["off"].items():
        assert found[name] == pytest.approx(shown, abs=0.002), name


def test_an_atom_without_its_reactant_attends_to_the_product_and_to_the_first_token(recorded: dict[str, Any]) -> None:
    model, (layer, head), shares = load_hub("rxnmapper", device="cpu"), recorded["head"], []
    for versions in recorded["reactions"].values():
        entry = versions.get("missing", {"smiles": versions["canonical"]["smiles"], "truth": ()})
        reaction, lost = read_reaction(entry["smiles"]), [i for i, right in enumerate(entry["truth"]) if not right]
        trace = model.run("".join(reaction.tokens)).trace
        weights = trace[f"encoder.{layer}.self"].weights(head=head)[0].squeeze()
        products = torch.tensor(reaction.places[reaction.num_reactants :]) + 1
        shares += weights[products[lost]][:, torch.cat((torch.tensor([0]), products))].sum(dim=1).tolist()
    assert len(shares) == 53
    assert np.mean(shares) > 0.8
