"""The move as rotations: the chosen pair, all pairs, and the matrix they make."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import torch

from pages.relative_projection.matrix_figure import matrix_figure
from pages.relative_projection.move import Move, about_pair
from pages.relative_projection.rotation_figure import pairs_figure, rotation_figure, shown_pairs
from ui.chapter.chapter import Chapter
from viz_core.positional import sinusoidal_rows

_MOST_DIMENSIONS = 64  # of the matrix in one heatmap, so that its blocks can be seen


def rotation(chapter: Chapter, move: Move, hide_answer: bool) -> go.Figure:
    """Draw the chosen pair on its circle; without its new position while the answer is hidden."""
    step = 1 if move.offset >= 0 else -1
    path = move.pairs(*range(move.position, move.position + move.offset + step, step))[:, move.pair]
    start = sinusoidal_rows(torch.tensor([move.position]), move.num_hiddens, move.base, move.dtype)[0]
    rotated = (move.matrix() @ start).double().unflatten(0, (-1, 2))[move.pair].numpy()
    turn = float(move.offset * move.omega()[move.pair])
    values = about_pair(move)
    names = chapter.words.group("figure") | {"turn": chapter.words("figure.turn", **values)}
    figure = rotation_figure(path, rotated, turn, move.position, move.pair, names, not hide_answer)
    chapter.figure("rotation", figure, hide_answer=hide_answer, **values)
    return figure


def all_pairs(chapter: Chapter, move: Move) -> None:
    """Small multiples: what the offset does to every pair, or to some spread over all."""
    count = move.num_hiddens // 2
    shown = shown_pairs(count, move.pair)
    start, arrived = move.pairs(move.position, move.position + move.offset)[:, shown]
    turns = (move.offset * move.omega())[shown].numpy()
    degrees = np.degrees(turns)
    chapter.figure(
        "pairs",
        lambda: pairs_figure(start, arrived, turns, shown, move.pair, chapter.words.group("figure")),
        height=480,
        shown=len(shown),
        count=count,
        first=shown[0],
        last=shown[-1],
        fastest=f"{degrees[0]:,.1f}",
        slowest=f"{degrees[-1]:,.3g}",
    )


def matrix(chapter: Chapter, move: Move) -> None:
    """The matrix, or as much of it around the chosen pair as can be read."""
    size = min(move.num_hiddens, _MOST_DIMENSIONS)
    first = min(max(0, 2 * move.pair + 1 - size // 2) // 2 * 2, move.num_hiddens - size)
    M = move.matrix().float().numpy()
    cosine, sine = M[2 * move.pair, 2 * move.pair : 2 * move.pair + 2]
    cut = M[first : first + size, first : first + size]
    chapter.figure(
        "matrix",
        lambda: matrix_figure(cut, first, move.pair, chapter.words.group("figure")),
        height=480,
        low=first,
        high=first + size - 1,
        width=move.num_hiddens,
        pair=move.pair,
        cosine=f"{cosine:.3f}",
        sine=f"{sine:.3f}",
    )
