"""The chapter on linear attention: its figures against the library, and what it says of them."""

import numpy as np

from pages.linear_attention.parts import Layer, about_row
from tests.pages.reading import claim_names, drawn, figure_names, figures
from tests.visits import Visits
from viz_core.lessons.linear_attention import LETTERS, draw_numbers

CHAPTER = "linear-attention"


def test_opens_with_one_number_a_key(visits: Visits) -> None:
    app = visits(CHAPTER)
    stream = draw_numbers(2)
    np.testing.assert_array_equal(drawn(app, "map")[0]["z"], stream.operator("sum", 0.9).map()[0, 0].float().numpy())
    sums = np.bincount(stream.written[:12], stream.values[:12, 0], len(LETTERS))  # of what each letter was given
    np.testing.assert_array_equal(drawn(app, "state")[0]["y"], sums)
    assert figures(app, "map")[0]["layout"]["annotations"][0]["text"] == f"<b>A = {sums[0]:g}</b>", "the row's answer"
    assert {"map", "state", "decay", "added", "erased", "errors"} <= set(figure_names(app))
    assert {"same", "chunks", "causal", "equal", "age", "written", "orthogonal"} <= set(claim_names(app))


def test_a_row_has_its_output() -> None:
    layer = Layer("delta", 11, 0.9, 2)
    assert about_row(layer.forms(), layer.stream(), 11)["output"] == "7.2"  # written one token ago, then faded
