"""Every field whose tokens have places: its drawing, and what the browser gets of it."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.source_files import ROOT
from viz_core.hub.runs.sound_input import SoundFeatures
from viz_core.hub.word_timestamps import TimedWord
from viz_core.lab.atom_maps import read_reaction
from viz_core.lab.fields.molecules import draw_reaction
from viz_core.lab.fields.pictures import draw_picture
from viz_core.lab.fields.sounds import draw_sound, moments, sum_moments
from viz_core.lab.places import Drawing, Panel, Place, encode_places
from viz_core.sounds.sound import tone_sequence


def draw_molecules() -> Drawing:
    """Water from methanol, without hydrogen."""
    alone = {"product": False, "atoms": [[0, 0, ""], [1, 0, "OH"]], "bonds": [[0, 1, 1]]}
    water = {"product": True, "atoms": [[0, 0, "OH₂"]], "bonds": []}
    return draw_reaction([alone, water], read_reaction("CO>>O"), ("C1", "O2", "O1"), (1,), {0: "reagent"})


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
    files = {path.stem for path in (ROOT / "viz_core" / "lab" / "fields").glob("[!_]*.py")}
    assert files == set(FIELDS)


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


@each_field
def test_keys_cover_no_place_twice(draw: Callable[[], Drawing]) -> None:
    drawing = draw()
    boxes = [box for place in drawing.places[: drawing.num_keys] for box in place.boxes]
    middles = {(panel, round(x + width / 2), round(y + height / 2)) for panel, x, y, width, height in boxes}
    assert len(middles) == len(boxes)


@each_field
def test_other_numbers_of_weights_are_refused(draw: Callable[[], Drawing]) -> None:
    drawing = draw()
    wrong = np.zeros((len(drawing.places) - drawing.num_keys, drawing.num_keys + 1))
    with pytest.raises(ValueError, match="weights: expected shape"):
        encode_places(drawing, wrong, {}, "en")


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ((), "num_keys"),
        ((Place("a"),), "a box or a token"),
        ((Place("a", token=2),), "tokens below 2"),
        ((Place("a", token=0), Place("b", token=0)), "different tokens"),
        ((Place("a", ((0, 5, 5, 10, 1),)),), "inside of its panel"),
        ((Place("a", ((0, 5, 5, 0, 1),)),), "inside of its panel"),
    ],
)
def test_a_token_without_a_place_is_refused(places: tuple[Place, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Drawing((Panel((0, 0, 10, 10)),), places, 1, ("x", "y"))


def test_moments_hold_every_key_once() -> None:
    weights = np.random.default_rng(0).random((2, 1500))
    found = sum_moments(weights, 30.0)
    edges = moments(1500, 30.0)
    assert found.shape == (2, len(edges) - 1)
    assert found.shape[1] <= 320
    np.testing.assert_allclose(found.sum(axis=1), weights.sum(axis=1))
    np.testing.assert_allclose(found[1, 3], weights[1, edges[3] : edges[4]].sum())


def test_the_component_knows_no_field() -> None:
    script = Path(ROOT / "assets" / "components" / "places" / "main.js").read_text(encoding="utf-8")
    assert not [word for word in ("bond", "reactant", "product", "seconds", "patch") if word in script]
