"""Spectrogram of a sound, and below it the attention of the step that writes a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from ui.widgets.figure_style import ACCENT, CATEGORIES, KEYS, WEIGHTS_SCALE, Labels, lay_out
from ui.widgets.heatmap import to_pixels
from viz_core.hub.runs.sound_input import SoundFeatures
from viz_core.hub.word_timestamps import TimedWord

_SPLIT = 0.36  # so much of the height is below


def sound_figure(
    sound: SoundFeatures,
    curves: Mapping[str, Float[Tensor, " keys"]],
    words: Sequence[TimedWord],
    chosen: int,
    labels: Labels,
) -> go.Figure:
    """The spectrogram, mel bands from low to high; below it weights over the same time; the chosen word framed.

    Args:
        curves: weights by name; the first in the accent colour.
        words: with their times: each begins at a fine line.
        chosen: which of them is framed, from 0; none where there are no words.
        labels: names "seconds", "band" and "weight".
    """
    spectrogram = sound.spectrogram
    low, high = float(spectrogram.min()), float(spectrogram.max())
    picture = go.Heatmap(
        z=to_pixels(spectrogram.clone(), low, max(high, low + 1e-6)),
        x0=sound.frame_seconds / 2,
        dx=sound.frame_seconds,
        colorscale=WEIGHTS_SCALE,
        showscale=False,
        hovertemplate=f"%{{x:.2f}} s · {labels['band']} %{{y}}<extra></extra>",
        yaxis="y2",
    )
    colours = (ACCENT, CATEGORIES[-1])
    figure = go.Figure([picture, *_lines(sound, curves, colours)])
    frame = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "line": {"color": KEYS, "width": 2}}
    starts = {"type": "line", "yref": "paper", "y0": 1 - 0.03, "y1": 1, "line": {"color": KEYS, "width": 1}}
    shapes = [{**starts, "x0": word.start, "x1": word.start} for word in words]
    if words:
        shapes.append({**frame, "x0": words[chosen].start, "x1": words[chosen].end})
    return lay_out(
        figure,
        labels["seconds"],
        labels["weight"],
        height=430,
        shapes=shapes,
        xaxis={"range": [0, spectrogram.shape[1] * sound.frame_seconds], "showgrid": False},
        yaxis={"domain": [0, _SPLIT - 0.04], "rangemode": "tozero"},
        yaxis2={"domain": [_SPLIT, 1], "title": {"text": labels["band"]}, "showgrid": False, "automargin": True},
    )


def _lines(
    sound: SoundFeatures, curves: Mapping[str, Float[Tensor, " keys"]], colours: Sequence[str]
) -> list[go.Scatter]:
    times = ((np.arange(sound.num_keys) + 0.5) * sound.key_seconds).astype(np.float32)
    return [
        go.Scatter(
            x=times,
            y=weights.numpy().astype(np.float32),
            name=name,
            mode="lines",
            line={"color": colour, "width": 2, "shape": "hvh"},
            hovertemplate="%{x:.2f} s: %{y:.4f}<extra></extra>",
        )
        for (name, weights), colour in zip(curves.items(), colours, strict=False)
    ]
