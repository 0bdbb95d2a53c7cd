"""What a way of masking made of one row of scores, at every valid length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from pages.scoring_functions.number_grid import number_grid
from ui.widgets.figure_style import CATEGORIES, KEYS
from viz_core.lessons.scoring_functions.mask_variants import MaskRun


def mask_figure(runs: Sequence[MaskRun], labels: Mapping[str, str]) -> go.Figure:
    """Weights by valid length (rows) and key (columns), with a line between the keys that may be seen and the rest.

    Cells are empty where there is no number: torch refused, or gave NaN.
    """
    num_keys = len(runs) - 1
    weights = np.full((len(runs), num_keys), np.nan, dtype=np.float32)
    for row, run in enumerate(runs):
        if run.weights is not None:
            weights[row] = run.weights.numpy()
    lengths = [str(run.length) for run in runs]
    keys = [str(key + 1) for key in range(num_keys)]
    figure = number_grid(
        weights, lengths, keys, labels["key"], labels["length"], digits=0, cell=24, row_colour=CATEGORIES[7]
    )
    steps = np.arange(len(runs), dtype=np.float32)
    figure.add_scatter(
        x=np.repeat(steps - 0.5, 2),
        y=np.stack([steps - 0.5, steps + 0.5], axis=1).ravel(),
        mode="lines",
        line={"color": KEYS, "width": 2.5},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.update_xaxes(range=[-0.6, num_keys - 0.4])
    return figure
