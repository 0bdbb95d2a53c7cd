"""The skew that turns scores by offset into scores by key, stage by stage; entries keep the colour of their offset."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int

from ui.widgets.figure_style import SIGNED_SCALE, Labels, lay_out
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, offsets_of, skew_stages

_PADDING = "#9aa0a6"


def skew_figure(num_tokens: int, stage: str, labels: Labels) -> go.Figure:
    """One stage.

    Every stage is drawn from its own upper left corner, at the same height of a row.

    Raises:
        ValueError: if there is no such stage.
    """
    if stage not in STAGES:
        raise ValueError(f"stage: expected one of {', '.join(STAGES)}, got {stage!r}")
    entries = skew_stages(num_tokens)[stage]
    figure = go.Figure(_traces(entries, num_tokens, labels))
    height = 150 + (num_tokens + 1) * (38 if num_tokens <= 6 else 26)
    return lay_out(
        figure,
        labels["column"],
        labels["row"],
        height=height,
        xaxis={"range": [-0.5, entries.shape[1] - 0.5]},
        yaxis={"range": [num_tokens + 0.5, -0.5], "showgrid": False, "tickvals": list(range(len(entries)))},
        margin={"t": 44},
        title=_title(labels[f"stage-{stage}"]),
    )


def _traces(entries: Int[np.ndarray, "rows columns"], num_tokens: int, labels: Labels) -> list[go.Heatmap]:
    offsets = offsets_of(entries, num_tokens)
    row = (entries - 1) // (2 * num_tokens - 1)
    readable = entries.shape[1] <= 60
    gap, texts = (1, "%{text}") if readable else (0, "")
    names = np.vectorize(lambda o: "" if np.isnan(o) else "0" if o == 0 else f"{o:+.0f}")(offsets)
    entry = go.Heatmap(
        z=offsets,
        text=names,
        texttemplate=texts,
        customdata=row,
        hovertemplate=f"{labels['offset']} %{{text}} · {labels['query']} %{{customdata}}<extra></extra>",
        colorscale=SIGNED_SCALE,
        zmin=-max(1, num_tokens - 1),
        zmax=max(1, num_tokens - 1),
        xgap=gap,
        ygap=1,
        hoverongaps=False,
        showscale=False,
    )
    padding = go.Heatmap(
        z=np.where(entries == 0, 1, np.nan).astype(np.float32),
        text=np.where(entries == 0, "0", ""),
        texttemplate=texts,
        hovertemplate=f"{labels['padding']}<extra></extra>",
        colorscale=[[0, _PADDING], [1, _PADDING]],
        opacity=0.45,
        xgap=gap,
        ygap=1,
        hoverongaps=False,
        showscale=False,
    )
    return [padding, entry]


def _title(text: str) -> dict[str, object]:
    place = {"x": 0, "xanchor": "left", "xref": "paper", "y": 0.98, "yanchor": "top"}
    return {"text": text, "font": {"size": 14}, **place}
