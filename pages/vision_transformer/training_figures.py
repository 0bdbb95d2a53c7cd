"""How a classifier was trained: its curves, calibration and confusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int

from ui.widgets.figure_style import ACCENT, CATEGORIES, WEIGHTS_SCALE, lay_out

Labels = Mapping[str, str]


def curve_figure(curve: Sequence[Mapping[str, float]], labels: Labels) -> go.Figure:
    """Losses and the accuracy on held-out pictures, by epoch.

    Args:
        labels: names "train_loss", "validation_loss", "validation_accuracy", "epoch", "loss" and "accuracy".
    """
    epochs = np.array([point["epoch"] for point in curve], dtype=np.float32)
    figure = go.Figure()
    for name, colour, axis in (
        ("train_loss", CATEGORIES[-1], "y"),
        ("validation_loss", ACCENT, "y"),
        ("validation_accuracy", CATEGORIES[1], "y2"),
    ):
        values = np.array([point[name] for point in curve], dtype=np.float32)
        figure.add_scatter(
            x=epochs, y=values, name=labels[name], yaxis=axis, line={"color": colour}, mode="lines+markers"
        )
    return lay_out(
        figure,
        labels["epoch"],
        labels["loss"],
        380,
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "title": labels["accuracy"],
            "showgrid": False,
            "range": [0, 100],
            "tickmode": "linear",
            "dtick": 20,
        },
        legend={"y": 1.02},
    )


def calibration_figure(bins: Sequence[Mapping[str, float]], labels: Labels) -> go.Figure:
    """Accuracy by confidence, beside the diagonal of a calibrated model.

    Args:
        labels: names "sure", "right", "as-often", "measured" and "pictures".
    """
    names = ("confidence", "accuracy")
    confidence, accuracy = (np.array([each[name] for each in bins], dtype=np.float32) for name in names)
    figure = go.Figure()
    line = {"color": "#9aa0a6", "dash": "dash"}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, name=labels["as-often"], hoverinfo="skip")
    figure.add_scatter(
        x=confidence,
        y=accuracy,
        customdata=[each["pictures"] for each in bins],
        name=labels["measured"],
        mode="lines+markers",
        line={"color": ACCENT, "width": 3},
        marker={"size": 9},
        hovertemplate=f"%{{x:.1%}}: %{{y:.1%}} · %{{customdata:,}} {labels['pictures']}<extra></extra>",
    )
    share = {"range": [0, 1.02], "tickformat": ".0%"}
    return lay_out(figure, labels["sure"], labels["right"], 340, xaxis=share, yaxis=share)


def confusion_figure(counts: Int[np.ndarray, "is said"], names: Sequence[str], labels: Labels) -> go.Figure:
    """Test pictures of each label (rows) by predicted label (columns); coloured by the square root of the count.

    Args:
        labels: names "is", "said" and "pictures".
    """
    figure = go.Figure(
        go.Heatmap(
            z=np.sqrt(counts).astype(np.float32),
            x=list(names),
            y=list(names),
            text=counts.astype(np.int32),
            texttemplate="%{text}",
            colorscale=WEIGHTS_SCALE,
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate=f"{labels['is']} %{{y}}, {labels['said']} %{{x}}: %{{text}} {labels['pictures']}"
            "<extra></extra>",
        )
    )
    return lay_out(figure, labels["said"], labels["is"], 380, xaxis={"tickangle": -45}, yaxis={"autorange": "reversed"})
