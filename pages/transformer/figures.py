"""Pictures of the Transformer chapter: depth, training, parameters, the causal mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from ui.widgets import traces
from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, QUERIES, Labels, lay_out, log_ticks, token_ticks
from viz_core.models.anatomy import Step, mean_norms


def depth_figure(steps: tuple[Step, ...], labels: Labels) -> go.Figure:
    """Mean length of the token vectors after each step, on a logarithmic scale, with the main path and its branches."""
    norms = mean_norms(steps)
    ticks = log_ticks(min(norms), max(norms))
    names = [step_name(step.name, step.block, labels) for step in steps]
    branch = [step.name in {"attention", "ffn"} for step in steps]
    figure = go.Figure()
    for wanted, colour, label in ((False, QUERIES, labels["main"]), (True, KEYS, labels["branch"])):
        picked = [i for i, is_branch in enumerate(branch) if is_branch is wanted]
        figure.add_scatter(
            x=[names[i] for i in picked],
            y=np.array([norms[i] for i in picked], dtype=np.float32),
            mode="lines+markers" if not wanted else "markers",
            name=label,
            line={"color": colour},
            marker={"size": 9, "color": colour, "symbol": "diamond" if wanted else "circle"},
        )
    return lay_out(
        figure,
        labels["step"],
        labels["norm"],
        height=400,
        xaxis={"categoryorder": "array", "categoryarray": names, "tickangle": -40},
        yaxis={"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]},
    )


def step_heatmap(step: Step, tokens: Sequence[str], labels: Labels) -> go.Figure:
    """The vectors of one step: a row for each token, a column for each dimension, signed around zero."""
    values = step.output[0].float().cpu().numpy()
    limit = float(np.abs(values).max())
    figure = traces.cells(
        go.Figure(),
        values,
        hover=f"%{{y}} · {labels['dimension']} %{{x}}: %{{z:.3f}}",
        limit=limit,
        showscale=True,
        y=list(range(len(tokens))),
    )
    return lay_out(
        figure,
        labels["dimension"],
        labels["token"],
        height=max(220, 60 + 24 * len(tokens)),
        yaxis={"autorange": "reversed", **token_ticks(tokens)},
    )


def map_figure(
    values: Float[np.ndarray, "queries keys"],
    rows: Sequence[str],
    columns: Sequence[str],
    shown: str,
    titles: tuple[str, str] = ("", ""),
    largest: float | None = 1.0,
) -> go.Figure:
    """A map with its tokens along both sides; cells that are NaN stay blank.

    Args:
        shown: what the colours are.
        titles: of the columns and the rows.
        largest: the value of the darkest colour; that of the largest cell if None.
    """
    figure = traces.cells(go.Figure(), values, hover="%{z:.4f}", most=largest, bar=shown, gap=1)
    return lay_out(
        figure,
        *titles,
        height=max(260, 110 + 26 * len(rows)),
        xaxis={**token_ticks(columns), "tickangle": -45},
        yaxis={**token_ticks(rows), "autorange": "reversed"},
    )


def mask_figure(
    weights: Float[np.ndarray, "queries keys"],
    rows: Sequence[str],
    columns: Sequence[str],
    labels: Labels,
    causal: bool = True,
) -> go.Figure:
    """A decoder map; cells that the causal mask hides are blank."""
    allowed = np.tril(np.ones_like(weights, dtype=bool)) if causal else np.ones_like(weights, dtype=bool)
    titles = labels["written"], labels["writing"]
    return map_figure(np.where(allowed, weights, np.nan), rows, columns, labels["weight"], titles)


def curve_figure(curve: Sequence[Mapping[str, float]], labels: Labels) -> go.Figure:
    """Training and validation loss, and validation BLEU on an axis of its own, by epoch."""
    epochs = [point["epoch"] for point in curve]
    figure = go.Figure()
    series = (("train_loss", CATEGORIES[5], "y"), ("validation_loss", QUERIES, "y"), ("validation_bleu", KEYS, "y2"))
    for name, colour, axis in series:
        values, mode = [point[name] for point in curve], "lines+markers"
        traces.line(figure, epochs, values, colour, labels[name], yaxis=axis, mode=mode, hover=None)
    figure.update_layout(yaxis2={"overlaying": "y", "side": "right", "title": labels["bleu"], "showgrid": False})
    lay_out(figure, labels["epoch"], labels["loss"])
    return figure.update_layout(yaxis2={"title": labels["bleu"]})


def length_figure(bins: Sequence[Mapping[str, float]], labels: Labels) -> go.Figure:
    """Test BLEU by length of the source sentence, with the number of sentences on each bar."""
    names = [f"{b['from']:.0f}–{b['to']:.0f}" for b in bins]
    figure = traces.bars(
        go.Figure(),
        names,
        [b["bleu"] for b in bins],
        ACCENT,
        hover=f"%{{x}}: %{{y:.1f}} · %{{customdata:,}} {labels['sentences']}",
        text=[f"{b['bleu']:.0f}" for b in bins],
        customdata=[b["sentences"] for b in bins],
    )
    return lay_out(figure, labels["length"], labels["bleu"])


def parameter_figure(counts: Mapping[str, int], labels: Labels) -> go.Figure:
    """Parameters by part of the model, the largest first."""
    parts = sorted(counts, key=lambda part: counts[part])
    figure = traces.bars(
        go.Figure(),
        [counts[p] for p in parts],
        [labels.get(p, p) for p in parts],
        ACCENT,
        hover="%{y}: %{text}",
        across=True,
        text=[f"{counts[p]:,}" for p in parts],
        textposition="auto",
    )
    return lay_out(figure, labels["parameters"], "", height=60 + 38 * len(parts))


def step_name(name: str, block: int | None, labels: Labels) -> str:
    """ "2 · add & norm 1" """
    return labels[name] if block is None else f"{block + 1} · {labels[name]}"
