"""What the chapter on architectures says of its maps, held against what is drawn."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from plotly.colors import hex_to_rgb

from pages.architectures.figures import pairs_figure
from ui.text.words import load_words
from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, path_matrix

LABELS = load_words("architectures", "en").group("figure")


@pytest.mark.parametrize(("n", "k", "r"), [(1, 3, 4), (2, 2, 2), (9, 1, 1), (40, 3, 5), (64, 7, 64)])
def test_of_every_pair(n: int, k: int, r: int) -> None:
    sizes = LayerSizes(n, 8, k, r)
    shown = {name: path_matrix(name, sizes).numpy() for name in ARCHITECTURES}
    figure = pairs_figure(shown, LABELS)
    drawn = {name: np.asarray(trace.z, dtype=float) for name, trace in zip(shown, figure.data, strict=True)}
    darkest, brightest = (hex_to_rgb(figure.layout.coloraxis.colorscale[i][1]) for i in (0, -1))
    assert sum(darkest) < sum(brightest)  # more steps are brighter
    for lengths in drawn.values():
        assert (np.diag(lengths) == 0).all()
        assert np.isnan(lengths[np.tril_indices(n, -1)]).all()
    assert set(drawn["attention"][np.triu_indices(n, 1)]) <= {1}
    assert list(drawn["recurrent"][0]) == list(range(n))
    for name, window in (("convolution", k), ("restricted", r)):
        assert set(_widths(drawn[name][0])[:-1]) <= {window - 1}  # the last step is cut off by the end
    widths = _widths(drawn["dilated"][0])[:-1]
    assert widths == [k ** (step + 1) - k**step for step in range(len(widths))]


def _widths(row: np.ndarray) -> list[int]:
    """How many columns each number of steps fills, without the token itself and without blanks."""
    return [len(list(same)) for steps, same in groupby(row[1:]) if not np.isnan(steps)]
