"""What heads are worth and do: importance, a run that is stopped and goes on, marks, and alignments of words."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from recipes.__main__ import main
from recipes.alignments import aligned_pairs, alignment_error_rate, measure_alignments
from recipes.atom_maps import KINDS, interval, mark, score
from recipes.head_importance import IMPORTANCE, MEANS, TranslatorSubject
from recipes.head_table import table
from recipes.reactions import TWENTY, MappedReaction
from recipes.sentence_pairs import Pair, load_pairs, split_pairs
from tests.tiny_models import TINY
from ui.compute.heads import read_importance
from viz_core.hub import load_hub
from viz_core.lab.atom_maps import head_weights, read_reaction, strongest_atoms
from viz_core.pretrained import Translator, load, load_translator
from viz_core.pretrained.bleu import paired_bootstrap, percentage_right
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.shipped import CheckpointError
from viz_core.runtime.assets import ASSETS
from viz_core.trace import Trace, gate, intervene
from viz_core.view.components import group_labels
from viz_core.view.shipped import aligning_head, translation_groups


def test_the_table_counts_heads_and_leaves_out_roles_of_marks() -> None:
    shares = {"encoder-self": np.array([[0.9, 0.6], [0.1, 0.2]]), "decoder-self": np.array([[0.4, 0.7], [0.0, 0.3]])}
    roles = {
        "encoder-self": [["separator", ""], ["previous", "previous"]],
        "decoder-self": [["", "first"], ["separator", "next"]],
    }
    first, second, *_, last = table(shares, roles).splitlines()[2:]
    assert first == "| encoder-self 1 | 0.75 | 2 of 2 | separator 1 |"
    assert second == "| encoder-self 2 | 0.15 | 0 of 2 | previous 2 |"
    assert last == "| all | 0.35 | 3 of 8 | 4 heads with another role than their mark's |"


def test_the_interval_is_the_one_of_a_sum_of_draws(shapes_unchecked: None) -> None:
    right = np.array([1.0] * 60 + [0.0] * 40)
    other = np.array([1.0] * 50 + [0.0] * 50)  # ten more are wrong
    rows = [np.stack([each, np.ones(100)], axis=1) for each in (right, other)]
    found = paired_bootstrap(percentage_right, *rows, rounds=4000)
    assert found.value == -10
    spread = 1.96 * 100 * np.sqrt(0.1 * 0.9 / 100)  # of a mean of a hundred that is 1 in ten
    assert (found.low, found.high) == pytest.approx((-10 - spread, -10 + spread), abs=1)
    assert paired_bootstrap(percentage_right, rows[0], rows[0]) == (0, 0, 0)
    with pytest.raises(ValueError, match="statistics of the same examples"):
        paired_bootstrap(percentage_right, rows[0], rows[1][:50])


def test_every_head_is_weighed_and_a_stopped_run_goes_on(
    checkpoints: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))
    command = ["head-importance", TINY, "--data", str(data), "--checkpoints", str(mine)]
    statistics, trace, calls = TranslatorSubject.statistics, TranslatorSubject.trace, []

    def first_site(self: TranslatorSubject) -> Trace:
        one = Trace()
        one.add(next(iter(trace(self))).source, "encoder.0.self")
        return one

    def stopped(self: TranslatorSubject, edits: Any) -> Any:
        calls.append(edits)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return statistics(self, edits)

    monkeypatch.setattr(TranslatorSubject, "statistics", stopped)
    monkeypatch.setattr(TranslatorSubject, "trace", first_site)
    short = lambda *given: greedy_search(*given[:-1], 2)  # noqa: E731
    monkeypatch.setattr("recipes.head_importance.greedy_search", short)
    with pytest.raises(KeyboardInterrupt):
        main(command)
    card = load(TINY, "cpu", mine).card
    unfinished = read_importance(mine / TINY, card)
    assert unfinished is not None
    assert [bool(head.without) for head in unfinished.heads] == [True, True, False, False]
    assert main(command) == 0
    assert len(calls) == 4 + 1 + 2 * 4 - 2
    closed = [call["encoder.0.self"][0].heads for call in calls[-4:]]  # each head alone: the others are off
    assert closed == [(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)]
    found = read_importance(mine / TINY, card)
    assert found is not None
    assert all(head.without and head.alone and head.gradient > 0 for head in found.heads)
    assert main(command) == 0, "nothing is left to do"
    before = len(calls)
    assert (mine / TINY / "card.md").read_text(encoding="utf-8").count("\n## Heads\n") == 1
    assert main([*command, "--every", "2"]) == 0, "other examples: all heads are measured anew"
    assert len(calls) == before + 1 + 2 * 4

    assert {tuple(each.shape) for each in load_file(mine / TINY / MEANS).values()} == {(4, 8)}
    (mine / TINY / IMPORTANCE).write_text("{")
    with pytest.raises(CheckpointError, match=r"heads.json of model 'tiny-en-fr' cannot be read"):
        read_importance(mine / TINY, card)
    (mine / TINY / IMPORTANCE).write_text('{"sha256": "of other weights"}')
    assert read_importance(mine / TINY, card) is None


def test_gradients_are_differences_of_the_loss(translator: Translator, data: Path) -> None:
    """A gate that is moved a little moves the loss by so much, a sentence at a time."""
    subject = TranslatorSubject(translator, data)
    gradients = subject.gradients()
    assert {site: tuple(each.shape) for site, each in gradients.items()} == dict.fromkeys(subject.trace().sites, (4,))
    test = split_pairs(load_pairs(data)).test

    def loss(one: Pair, xi: float) -> float:
        source, target = (translator.encode(text) for text in one)
        X, Y, lengths = translator.teacher_forced(source, target)
        with intervene({"decoder.1.cross": gate(2, xi)}):
            logits = translator.model(X, Y, lengths)
        return float(F.cross_entropy(logits[0], torch.tensor(target), reduction="sum"))

    slopes = [abs(loss(one, 1.01) - loss(one, 0.99)) / 0.02 for one in test]
    assert float(gradients["decoder.1.cross"][2]) == pytest.approx(sum(slopes) / len(slopes), rel=2e-2, abs=1e-3)


def test_what_ships_is_what_is_measured() -> None:
    """And one head aligns the words it writes, another the words it has read: not one for both (Chen 2020)."""
    model = load_translator("transformer-en-fr", "cpu")
    measured, shipped = measure_alignments(model), model.card.training["alignments"]
    assert measured is not None
    assert measured["pairs"] == shipped["pairs"] == 100
    for reading in ("written", "read"):
        for found, expected in zip(measured[reading], shipped[reading], strict=True):
            assert found == pytest.approx(expected, abs=0.01)
    view = aligning_head(translation_groups(model.translate("He is calm."), group_labels("translation")))
    best = min(rate for layer in shipped["written"] for rate in layer)
    assert shipped["written"][view.layer][view.head] == best < shipped["diagonal"]
    assert shipped["read"][view.layer][view.head] > shipped["diagonal"]


def test_the_error_rate_by_hand() -> None:
    sure, possible = [{(0, 0), (1, 1)}], [{(2, 1)}]
    assert alignment_error_rate([{(0, 0), (1, 1)}], sure, possible) == 0
    # a possible pair is not wrong: |A & S| = 2, |A & P| = 3, |A| = 3, |S| = 2
    assert alignment_error_rate([{(0, 0), (1, 1), (2, 1)}], sure, possible) == 0
    # one sure pair missed, one pair wrong: 1 - (1 + 1) / (2 + 2)
    assert alignment_error_rate([{(0, 0), (3, 3)}], sure, possible) == 0.5
    assert alignment_error_rate([{(3, 3)}], sure, possible) == 1
    # sentences are counted together, not one by one: 1 - (2 + 2 + 0) / (2 + 2 + 1 + 1)
    two = [[{(0, 0), (1, 1)}, {(0, 1)}], [{(0, 0), (1, 1)}, {(0, 0)}], [set(), set()]]
    assert alignment_error_rate(*two) == pytest.approx(1 / 3)


def test_the_end_of_a_sentence_has_no_partner() -> None:
    written = torch.tensor([[0.0, 0.8, 0.2], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    assert aligned_pairs(written, 2) == {(1, 0), (0, 1)}
    assert aligned_pairs(written.roll(1, dims=0), 2) == {(1, 1), (0, 2)}


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
