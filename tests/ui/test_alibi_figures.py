"""ALiBi's slopes and penalties in pictures."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ui.blocks.figures import penalty_figure, slopes_figure
from ui.widgets.figure_style import ACCENT
from viz_core.positional import alibi_slopes

LABELS: dict[str, str] = defaultdict(lambda: "label")


def test_alibi_slopes_and_penalties() -> None:
    figure = slopes_figure(alibi_slopes(8).numpy(), 2, LABELS)
    assert figure.data[0].y.tolist() == [2.0**-i for i in range(1, 9)]
    assert [i for i, colour in enumerate(figure.data[0].marker.color) if colour == ACCENT] == [2]
    penalty = penalty_figure(np.array([[0.0, -2], [-2, 0]]), LABELS).data[0]
    assert (penalty.zmin, penalty.zmax) == (-2, 2)
