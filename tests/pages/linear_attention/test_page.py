"""The chapter on linear attention: its figures against the library, and what it says of them."""

import numpy as np

from pages.linear_attention.parts import Layer, about_row
from tests.pages.reading import claim_names, drawn, figure_names
from tests.visits import Visits
from viz_core.lessons.linear_attention import LETTERS, draw_numbers

CHAPTER = "linear-attention"


def test_opens_with_one_number_a_key(visits: Visits) -> None:
    app = visits(CHAPTER)
    stream = draw_numbers(2)
    weights = stream.operator("sum", 0.9).map()[0, 0]
    np.testing.assert_array_equal(drawn(app, "map")[0]["z"], weights.float().numpy())
    sums = [0.0] * len(LETTERS)  # of what was written under each letter, by hand
    for letter, number in zip(stream.written[:12], stream.values[:12, 0].tolist(), strict=True):
        sums[letter] += number
    np.testing.assert_array_equal(drawn(app, "state")[0]["y"], sums)
    assert {"map", "state", "decay", "added", "erased", "errors"} <= set(figure_names(app))
    assert {"same", "chunks", "causal", "equal", "age", "written", "orthogonal"} <= set(claim_names(app))


def test_a_row_has_its_output() -> None:
    layer = Layer("delta", 11, 0.9, 2)
    assert about_row(layer.forms(), layer.stream(), 11)["output"] == "7.2"  # written one token ago, then faded
