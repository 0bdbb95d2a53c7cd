"""What the multi-head chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

import pytest

from benchmarks.view_bytes import decode_view
from tests.pages.reading import components, stands
from tests.visits import Visits
from viz_core.view.components import unframe

CHAPTER = "multi-head"


@pytest.mark.parametrize("block", [1, 2, 3])
def test_a_trained_layer_has_the_number_of_its_block(visits: Visits, block: int) -> None:
    """In the text above the maps, and in the maps."""
    app = visits(CHAPTER, **{"mh-source": "Trained layer", "mh-block": str(block)})
    stands(app)
    header, _ = unframe(components(app, "attention_view")[0].bytes)
    assert [layer["number"] for layer in header["base"]["groups"][0][0]["layers"]] == [block]


def test_the_maps_show_what_keys_bring(visits: Visits) -> None:
    app = visits(CHAPTER, **{"mh-source": "Trained layer", "mh-block": "2", "mh-quantity": "contributions"})
    stands(app)
    shown = decode_view(components(app, "attention_view")[0].bytes)
    assert shown.header["base"]["words"]["weight"] == "share of what the head adds"
    (maps, *_) = [part for name, part in shown.parts.items() if name.startswith("map")]
    assert maps.sum(dim=-1).tolist() == pytest.approx([1.0] * len(maps), abs=1e-4)
    plain = visits(CHAPTER, **{"mh-source": "Trained layer", "mh-block": "2"})
    weights = decode_view(components(plain, "attention_view")[0].bytes)
    (other, *_) = [part for name, part in weights.parts.items() if name.startswith("map")]
    assert float((maps - other).abs().max()) > 0.01
