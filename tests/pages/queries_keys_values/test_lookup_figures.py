"""The lookup's figure shows the library's numbers, and labels obey nobody."""

from __future__ import annotations

import numpy as np

from pages.queries_keys_values.figures import weights_figure
from ui.text.words import load_words
from ui.widgets.figure_style import KEYS
from viz_core.lessons.queries_keys_values.lookup import soft_lookup

LABELS = load_words("queries-keys-values", "en").group("figure")


def test_a_bar_for_every_key_even_where_keys_are_alike() -> None:
    weights = soft_lookup(["Li"], ["Li", "Li", "<b>"], 0.2)[0].numpy()
    figure = weights_figure(weights, [("Li", "Mu"), ("Li", "Ma"), ("<b>", "x" * 40)], LABELS)
    bars = figure.data[0]
    np.testing.assert_allclose(bars.x, weights, rtol=1e-6)
    assert bars.x.dtype == np.float32
    assert bars.marker.color == KEYS
    assert list(figure.layout.yaxis.ticktext) == ["Li → Mu", "Li → Ma", "&lt;b&gt; → xxxxxxxxxxxxxxx…"]
    assert bars.customdata[2].endswith("x" * 40)
