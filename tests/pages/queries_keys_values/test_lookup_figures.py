"""The lookup's figures show the library's numbers, and labels obey nobody."""

from __future__ import annotations

import numpy as np

from pages.queries_keys_values.lookup_figures import all_keys_figure, edits_figure, weights_figure
from ui.text.words import load_words
from ui.widgets.figure_style import KEYS
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE, edit_table, soft_lookup

LABELS = load_words("queries-keys-values", "en").group("figure")
NAMES = [key for key, _ in BOOK_DATABASE]


def test_a_bar_for_every_key_even_where_keys_are_alike() -> None:
    weights = soft_lookup(["Li"], ["Li", "Li", "<b>"], 0.2)[0].numpy()
    figure = weights_figure(weights, [("Li", "Mu"), ("Li", "Ma"), ("<b>", "x" * 40)], LABELS)
    bars = figure.data[0]
    np.testing.assert_allclose(bars.x, weights, rtol=1e-6)
    assert bars.x.dtype == np.float32
    assert bars.marker.color == KEYS
    assert list(figure.layout.yaxis.ticktext) == ["Li → Mu", "Li → Ma", "&lt;b&gt; → xxxxxxxxxxxxxxx…"]
    assert bars.customdata[2].endswith("x" * 40)


def test_the_table_of_edits_and_a_way_through_it() -> None:
    heatmap, path = edits_figure("Li", "Lipton", 2, LABELS).data
    np.testing.assert_array_equal(heatmap.z, edit_table("Li", "Lipton"))
    assert list(zip(path.y.tolist(), path.x.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 2)]
    whole = edits_figure("Li", "Lipton", 6, LABELS).data[1]
    assert (whole.y[-1], whole.x[-1]) == (2, 6)


def test_letters_of_a_hostile_key_are_escaped() -> None:
    axis = edits_figure("a", "<i>", 0, LABELS).layout.xaxis
    assert list(axis.ticktext) == ["∅", "&lt;", "i", "&gt;"]


def test_every_key_by_every_key() -> None:
    weights = soft_lookup(NAMES, NAMES, 0.2).numpy()
    heatmap = all_keys_figure(weights, NAMES, LABELS).data[0]
    np.testing.assert_allclose(heatmap.z, weights, rtol=1e-6)
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)
    assert heatmap.customdata[2, 1] == "Li attends to Lipton"
