"""Every field whose tokens have places: its drawing, and what the browser gets of it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from tests.source_files import ROOT
from viz_core.lab.fields.sounds import moments, sum_moments
from viz_core.lab.places import Drawing, Field, Panel, Place, encode_places, fields

FIELDS = fields()
each_field = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())


def drawn(field: Field) -> Drawing:
    return field.draw(*field.example())


def test_a_field_is_one_file() -> None:
    files = {path.stem for path in (ROOT / "viz_core" / "lab" / "fields").glob("[!_]*.py")}
    assert files == set(FIELDS)


@each_field
def test_every_token_has_a_place_that_the_browser_gets(field: Field) -> None:
    drawing = drawn(field)
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
def test_keys_cover_no_place_twice(field: Field) -> None:
    drawing = drawn(field)
    boxes = [box for place in drawing.places[: drawing.num_keys] for box in place.boxes]
    middles = {(panel, round(x + width / 2), round(y + height / 2)) for panel, x, y, width, height in boxes}
    assert len(middles) == len(boxes)


@each_field
def test_other_numbers_of_weights_are_refused(field: Field) -> None:
    drawing = drawn(field)
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
