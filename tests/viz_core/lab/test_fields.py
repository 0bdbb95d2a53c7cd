"""Fields whose tokens have places, what the browser gets of each, and atom maps by hand."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image

from tests.source_files import ROOT
from viz_core.hub import load_hub
from viz_core.hub.runs.sound_input import SoundFeatures
from viz_core.hub.word_timestamps import TimedWord
from viz_core.lab import atom_maps
from viz_core.lab.fields.molecules import draw_reaction, name_atoms
from viz_core.lab.fields.pictures import draw_picture
from viz_core.lab.fields.sounds import draw_sound
from viz_core.lab.places import Drawing, encode_places
from viz_core.sounds.sound import tone_sequence


def draw_molecules() -> Drawing:
    """Water from methanol, without hydrogen."""
    alone = {"product": False, "atoms": [[0, 0, ""], [1, 0, "OH"]], "bonds": [[0, 1, 1]]}
    water = {"product": True, "atoms": [[0, 0, "OH₂"]], "bonds": []}
    return draw_reaction([alone, water], atom_maps.read_reaction("CO>>O"), ("C1", "O2", "O1"), (1,), {0: "reagent"})


def draw_pictures() -> Drawing:
    """Six patches and two words."""
    return draw_picture(Image.new("RGB", (30, 20), "red"), (2, 3), ("a", "cat"), "{row}, {column}")


def draw_sounds() -> Drawing:
    """Five tones, and a word across two panels."""
    features = torch.rand(8, 270)
    sound = SoundFeatures(tone_sequence(), features, 0.01, 135, 0.02, 1, ((0, 0),), aligning_named=True)
    return draw_sound(sound, (TimedWord("one", 0.2, 0.5, (1, 2)), TimedWord("two", 1.2, 1.6, (2, 3))))


FIELDS = {"molecules": draw_molecules, "pictures": draw_pictures, "sounds": draw_sounds}
each_field = pytest.mark.parametrize("draw", FIELDS.values(), ids=FIELDS)


def test_a_field_is_one_file() -> None:
    assert {path.stem for path in (ROOT / "viz_core" / "lab" / "fields").glob("[!_]*.py")} == set(FIELDS)


@each_field
def test_every_token_has_a_place_that_the_browser_gets(draw: Callable[[], Drawing]) -> None:
    drawing = draw()
    assert drawing.panels
    num_queries = len(drawing.places) - drawing.num_keys
    assert num_queries
    weights = np.linspace(0, 1, num_queries * drawing.num_keys).reshape(num_queries, -1)
    found = json.loads(encode_places(drawing, weights, {"label": "<b>"}, "en", start=1 if num_queries > 1 else 0))
    assert len(found["places"]) == len(drawing.places)
    assert found["start"] == drawing.num_keys + (num_queries > 1)
    np.testing.assert_allclose(found["weights"], weights, atol=1e-4)
    names = [place["name"] for place in found["places"]]
    assert all(names)
    assert len(set(names[: drawing.num_keys])) == drawing.num_keys, "a sentence could not tell keys apart"
    assert {place["token"] for place in found["places"]} - {None} <= set(range(len(found["tokens"])))
    for panel in found["panels"]:
        assert (panel["picture"] or "").startswith(("data:image/png;base64,", "")[panel["picture"] is None :])
        ET.fromstring(f'<path d="{panel["strokes"]}"/>')


def test_atoms_elements_molecules_and_bonds_are_read() -> None:
    reaction = atom_maps.read_reaction("c1cc[nH]c1.[13CH3+:2](Cl)C%10=C%10 >> Br[Se]")
    assert reaction.tokens[:4] == ("c", "1", "c", "c")
    assert reaction.elements == ("C", "C", "C", "N", "C", "C", "Cl", "C", "C", "Br", "Se")
    assert reaction.molecules == (0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2)
    assert (reaction.num_reactants, reaction.num_products) == (9, 2)
    assert set(reaction.bonds) == {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (5, 6), (5, 7), (7, 8), (9, 10)}
    assert [reaction.tokens[place] for place in reaction.places[3:6]] == ["[nH]", "c", "[13CH3+:2]"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CCO", "then >> once"),
        ("CXx>>C", "Xx is no atom or bond"),
        ("C(C>>C", r"\( is not closed"),
        ("C1CC>>C", "Ring 1 is opened and not closed"),
        ("<script>", "is no atom or bond"),
    ],
)
def test_what_is_no_reaction_is_refused(text: str, why: str) -> None:
    with pytest.raises(atom_maps.ReactionError, match=why):
        atom_maps.read_reaction(text)


def test_the_strongest_atom_is_one_of_the_same_element() -> None:
    reaction = atom_maps.read_reaction("CO.N>>COF")
    weights = np.array([[0.1, 0.8, 0.0], [0.5, 0.2, 0.3], [0.9, 0.0, 0.0]])
    assert atom_maps.strongest_atoms(weights, reaction).tolist() == [0, 1, -1]


def test_a_reagent_is_a_molecule_that_no_product_atom_comes_from() -> None:
    reaction = atom_maps.read_reaction("CO.N.CC>>COF")
    assert atom_maps.reagents_of(reaction, [[0], [1], []]) == {1, 2}
    assert atom_maps.reagents_of(reaction, [[3, 4], [-1], [2]]) == {0}
    names = name_atoms(reaction, {role: f"{role} {{atom}}" for role in ("reactant", "reagent", "product")}, {1})
    assert names[1:4] == ["reactant O2", "reagent N3", "reactant C4"]
    assert names[5:] == ["product C1", "product O2", "product F3"]


def test_an_atom_is_unclear_if_its_runner_up_has_half_the_weight() -> None:
    reaction = atom_maps.read_reaction("CCO.N>>CCO")
    weights = np.array([[0.4, 0.2, 0.9, 0.0], [0.1, 0.3, 0.0, 0.9], [0.0, 0.0, 0.5, 0.5]])
    assert atom_maps.runners_up(weights, reaction).tolist() == [1, -1, -1]
    assert atom_maps.runners_up(weights, reaction, share=0.3).tolist() == [1, 0, -1]
    assert atom_maps.runners_up(np.ones((1, 1)), atom_maps.read_reaction("C>>C")).tolist() == [-1]


def test_neighbours_of_a_mapped_pair_count_more() -> None:
    """C-N and two carbons: alone, the second carbon would win by a little; beside the mapped N the first does."""
    reaction = atom_maps.read_reaction("CN.C>>CN")
    forward = np.array([[0.20, 0.0, 0.25], [0.0, 0.9, 0.0]])
    backward = np.zeros((2, 3))
    assert atom_maps.strongest_atoms(forward, reaction).tolist() == [2, 1]
    assert atom_maps.map_with_neighbours(forward, backward, reaction).tolist() == [0, 1]
    assert atom_maps.map_with_neighbours(forward, backward, reaction, factor=1.0).tolist() == [2, 1]
    # the other direction is added, and no reactant atom is given twice
    backward[0] = [0.2, 0.0, 0.0]
    assert atom_maps.map_with_neighbours(forward, backward, reaction, factor=1.0).tolist() == [0, 1]
    twice = atom_maps.read_reaction("C>>CC")
    assert sorted(atom_maps.map_with_neighbours(np.array([[0.9], [0.5]]), np.zeros((2, 1)), twice).tolist()) == [-1, 0]


def test_no_head_attends_to_a_masked_atom() -> None:
    model, smiles = load_hub("rxnmapper", device="cpu"), "CCO.CC(=O)Cl>>CCOC(C)=O"
    forward, _ = atom_maps.measure_reaction(model, smiles)
    masked, back = atom_maps.measure_reaction(model, smiles, masked=(2, 4))
    assert (forward[..., [2, 4]] > 0).all()
    assert (masked[..., [2, 4]] == 0).all()
    assert (masked[..., [0, 1, 3, 5, 6]] > 0).all()
    assert (back > 0).all(), "a masked atom is no key, but still a query"
    # the first pass has no other input: its other keys get what the masked ones had, each by the same factor
    factors = masked[0][..., [0, 1]] / forward[0][..., [0, 1]]
    np.testing.assert_allclose(factors[..., 0], factors[..., 1], rtol=1e-3)
    assert (factors >= 1).all()
