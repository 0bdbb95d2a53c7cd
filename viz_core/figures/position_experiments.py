"""Experiments on position schemes: what shuffling changes, what depth does, what is learned, what things cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from viz_core.figures.style import ACCENT, CATEGORIES, QUERIES, SIGNED_SCALE, WEIGHTS_SCALE, lay_out

Labels = Mapping[str, str]


def residual_figure(residuals: Mapping[str, float], threshold: float, title: str, labels: Labels) -> go.Figure:
    """A number for each scheme on a logarithmic axis, those above the threshold in the accent colour.

    0 is drawn at the rounding error of float32.
    """
    names = list(residuals)[::-1]
    values = np.array([max(residuals[name], 2**-23) for name in names], dtype=np.float32)
    figure = go.Figure(
        go.Bar(
            x=values,
            y=[labels[name] for name in names],
            orientation="h",
            marker={"color": [ACCENT if value > threshold else CATEGORIES[-1] for value in values]},
            text=[f"{residuals[name]:.2g}" for name in names],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    figure.update_xaxes(type="log", range=[-8, 1.6], exponentformat="power", dtick=2)
    return lay_out(figure, title, "", height=80 + 30 * len(names))


def collapse_figure(curves: Mapping[str, Float[np.ndarray, "layers"]], labels: Labels) -> go.Figure:
    """Distance to equal rows after each layer, one line a stack, on a logarithmic axis."""
    figure = go.Figure()
    for i, (name, curve) in enumerate(curves.items()):
        figure.add_scatter(
            y=curve.astype(np.float32),
            name=labels[f"stack-{name}"],
            mode="lines+markers",
            line={"color": CATEGORIES[i]},
            marker={"size": 5, "symbol": ("circle", "square", "diamond", "cross")[i]},
            hovertemplate="%{y:.2e}",
        )
    figure.update_yaxes(type="log", exponentformat="power", dtick=4)
    figure.update_layout(hovermode="x unified")
    return lay_out(figure, labels["layer"], labels["distance"], height=400)


def loss_figure(losses: Sequence[float], num_steps: int, references: Mapping[str, float], labels: Labels) -> go.Figure:
    """The loss of each step so far, with the losses of tables that are not trained as level lines."""
    figure = go.Figure()
    figure.add_scatter(
        x=np.arange(1, len(losses) + 1),
        y=np.array(losses, dtype=np.float32),
        name=labels["table-learned"],
        line={"color": QUERIES},
        hovertemplate="%{x}: %{y:.4f}<extra></extra>",
    )
    for i, (name, loss) in enumerate(references.items(), start=1):
        figure.add_scatter(
            x=[1, num_steps],
            y=[loss, loss],
            mode="lines",
            name=labels[f"table-{name}"],
            line={"color": CATEGORIES[i], "dash": "dash"},
            hovertemplate="%{y:.4f}<extra></extra>",
        )
    figure.update_xaxes(range=[0, num_steps])
    figure.update_yaxes(type="log", dtick="D2")
    return lay_out(figure, labels["training-step"], labels["loss"], height=320)


def similarity_figure(tables: Mapping[str, Float[np.ndarray, "n d"]], labels: Labels) -> go.Figure:
    """p_i . p_j of each table, divided by its largest, side by side on one colour scale."""
    figure = make_subplots(
        rows=1, cols=len(tables), subplot_titles=[labels[f"table-{name}"] for name in tables], shared_yaxes=True
    )
    for column, table in enumerate(tables.values(), start=1):
        similarity = table @ table.T
        heatmap = go.Heatmap(
            z=(similarity / np.abs(similarity).max()).astype(np.float32),
            coloraxis="coloraxis",
            hovertemplate="%{y}, %{x}: %{z:.3f}<extra></extra>",
        )
        figure.add_trace(heatmap, 1, column)
    lay_out(figure, labels["position"], "", height=360)
    figure.update_yaxes(range=[len(table) - 0.5, -0.5])
    figure.update_yaxes(title=labels["position"], col=1)
    bar = {"title": labels["similarity"], "thickness": 12}
    return figure.update_layout(coloraxis={"colorscale": SIGNED_SCALE, "cmin": -1, "cmax": 1, "colorbar": bar})


def weights_figure(maps: Mapping[str, Float[np.ndarray, "n n"]], labels: Labels) -> go.Figure:
    """Attention weights of each map, side by side on one colour scale."""
    figure = make_subplots(rows=1, cols=len(maps), subplot_titles=[labels[name] for name in maps], shared_yaxes=True)
    for column, weights in enumerate(maps.values(), start=1):
        heatmap = go.Heatmap(
            z=weights.astype(np.float32),
            coloraxis="coloraxis",
            hovertemplate="%{y} → %{x}: %{z:.3f}<extra></extra>",
        )
        figure.add_trace(heatmap, 1, column)
    lay_out(figure, labels["keys"], "", height=340)
    figure.update_yaxes(range=[len(weights) - 0.5, -0.5])
    figure.update_yaxes(title=labels["queries"], col=1)
    return figure.update_layout(
        coloraxis={"colorscale": WEIGHTS_SCALE, "cmin": 0, "colorbar": {"title": labels["weights"], "thickness": 12}}
    )


def cost_figure(
    lines: Mapping[str, tuple[Sequence[int], Sequence[int]]], x_title: str, y_title: str, labels: Labels
) -> go.Figure:
    """One line a scheme on two logarithmic axes; schemes that need nothing are left out, as log 0 is nowhere."""
    figure = go.Figure()
    for i, (name, (xs, ys)) in enumerate(lines.items()):
        if not any(ys):
            continue
        figure.add_scatter(
            x=list(xs),
            y=np.array(ys, dtype=np.float32),
            name=labels[name],
            mode="lines+markers",
            line={"color": CATEGORIES[i % len(CATEGORIES)], "dash": "dot" if i >= len(CATEGORIES) else "solid"},
            hovertemplate="%{y:,.0f}",
        )
    figure.update_xaxes(type="log", tickvals=list(xs), ticktext=[f"{x:,}" for x in xs])
    figure.update_yaxes(type="log", exponentformat="power", dtick=1)
    figure.update_layout(hovermode="x unified")
    return lay_out(figure, x_title, y_title, height=460)
