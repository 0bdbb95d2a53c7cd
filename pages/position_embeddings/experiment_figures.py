"""The experiments in pictures: what depth does, what is learned, what one word scores everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from ui.widgets.figure_style import CATEGORIES, QUERIES, SIGNED_SCALE, WEIGHTS_SCALE, Labels, lay_out, log_ticks


def collapse_figure(curves: Mapping[str, Float[np.ndarray, " layers"]], labels: Labels) -> go.Figure:
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
    return lay_out(
        figure,
        labels["layer"],
        labels["distance"],
        height=400,
        yaxis={"type": "log", "exponentformat": "power", "dtick": 4},
        hovermode="x unified",
    )


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
    ticks = log_ticks(min(*losses, *references.values()), max(*losses, *references.values()))
    return lay_out(
        figure,
        labels["training-step"],
        labels["loss"],
        height=320,
        xaxis={"range": [0, num_steps]},
        yaxis={"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]},
    )


def similarity_figure(tables: Mapping[str, Float[np.ndarray, "n d"]], labels: Labels) -> go.Figure:
    """p_i . p_j of each table, divided by its largest, side by side on one colour scale."""
    products = {labels[f"table-{name}"]: table @ table.T for name, table in tables.items()}
    similarities = {title: product / np.abs(product).max() for title, product in products.items()}
    figure = _side_by_side(similarities, "%{y}, %{x}: %{z:.3f}", labels["position"], labels["position"], 360)
    bar = {"title": labels["similarity"], "thickness": 12}
    return figure.update_layout(coloraxis={"colorscale": SIGNED_SCALE, "cmin": -1, "cmax": 1, "colorbar": bar})


def weights_figure(maps: Mapping[str, Float[np.ndarray, "n n"]], labels: Labels) -> go.Figure:
    """Attention weights of each map, side by side on one colour scale."""
    titled = {labels[name]: weights for name, weights in maps.items()}
    figure = _side_by_side(titled, "%{y} → %{x}: %{z:.3f}", labels["keys"], labels["queries"], 340)
    bar = {"title": labels["weights"], "thickness": 12}
    return figure.update_layout(coloraxis={"colorscale": WEIGHTS_SCALE, "cmin": 0, "colorbar": bar})


def _side_by_side(
    maps: Mapping[str, Float[np.ndarray, "n n"]], hovertemplate: str, x: str, y: str, height: int
) -> go.Figure:
    """Maps by their titles, with the first row on top."""
    figure = make_subplots(rows=1, cols=len(maps), subplot_titles=list(maps), shared_yaxes=True)
    for column, values in enumerate(maps.values(), start=1):
        cells = values.astype(np.float32)
        heatmap = go.Heatmap(z=cells, coloraxis="coloraxis", hovertemplate=hovertemplate + "<extra></extra>")
        figure.add_trace(heatmap, 1, column)
    lay_out(figure, x, "", height=height)
    figure.update_yaxes(range=[len(values) - 0.5, -0.5])
    return figure.update_yaxes(title=y, col=1)
