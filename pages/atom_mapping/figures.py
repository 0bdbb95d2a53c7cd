"""The accuracy of every head, with intervals."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from ui.text.head_names import head_place
from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, Labels, lay_out


def heads_figure(scores: dict[str, Any], labels: Labels) -> go.Figure:
    """Accuracy of each head by pass with intervals, a colour for each head of the layer, and chance."""
    mean, low, high = (np.array(scores["heads"][part]) for part in ("mean", "low", "high"))
    figure = go.Figure()
    layers, heads = mean.shape
    best = tuple(scores["places"]["best"])
    for head in range(heads):
        colour = CATEGORIES[head % len(CATEGORIES)]
        traces.dots(
            figure,
            np.arange(1, layers + 1) + (head - (heads - 1) / 2) * 0.09,
            mean[:, head],
            colour,
            labels["head"].format(head=head + 1),
            hover="%{customdata[0]}: %{y:.1%}",
            size=[14 if (layer, head) == best else 8 for layer in range(layers)],
            marker={"line": {"color": ACCENT, "width": [3 if (layer, head) == best else 0 for layer in range(layers)]}},
            error_y={
                "array": high[:, head] - mean[:, head],
                "arrayminus": mean[:, head] - low[:, head],
                "width": 0,
                "thickness": 1,
            },
            customdata=[[head_place(layer + 1, head + 1)] for layer in range(layers)],
        )
    chance = scores["table"]["chance"]["atoms"]["mean"]
    traces.line(figure, [0.5, layers + 0.5], [chance, chance], "rgba(128,128,128,0.8)", labels["chance"], dash="dot")
    lay_out(figure, labels["pass"], labels["accuracy"], 420)
    return figure.update_yaxes(range=[0, 1], tickformat=".0%").update_xaxes(dtick=1)
