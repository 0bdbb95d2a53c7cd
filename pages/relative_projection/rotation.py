"""The move as rotations: the chosen pair, all pairs, and the matrix they make."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st
import torch

from pages.relative_projection.matrix_figure import matrix_figure
from pages.relative_projection.move import Move, about_pair, readout
from pages.relative_projection.rotation_figure import pairs_figure, rotation_figure, shown_pairs
from ui.chapter.chapter import Chapter
from viz_core.lessons.relative_projection.proof import (
    POSITIONS,
    projection_residual,
    rotation_spread,
    rounding_bound,
)
from viz_core.positional import sinusoidal_rows

_MOST_DIMENSIONS = 64  # of the matrix in one heatmap, so that its blocks can be seen


def rotation(chapter: Chapter, move: Move, broken: str, hide_answer: bool, compared: bool) -> None:
    """Draw the chosen pair on its circle and whether the matrix hits every position; without either if hidden."""
    values = about_pair(move)
    mirrored = broken == "mirrored"
    if mirrored:
        chapter.figure("mirrored", rotation_of(chapter, move, mirrored=True), **values)
        _claims(chapter, move, mirrored=True)
        return
    if compared:
        chapter.figure("rotation", rotation_of(chapter, move), **values)
        _claims(chapter, move)
        return
    picture, side = st.columns([3, 2], gap="large", vertical_alignment="center")
    with picture:
        figure = rotation_of(chapter, move, with_move=not hide_answer)
        chapter.figure("rotation", figure, hide_answer=hide_answer, **values)
    if not hide_answer:
        with side:
            readout(chapter, move)
            _claims(chapter, move)


def rotation_of(chapter: Chapter, move: Move, with_move: bool = True, mirrored: bool = False) -> go.Figure:
    """Return the chosen pair on its circle, moved by the matrix or, mirrored, by its transpose."""
    step = 1 if move.offset >= 0 else -1
    path = move.pairs(*range(move.position, move.position + move.offset + step, step))[:, move.pair]
    start = sinusoidal_rows(torch.tensor([move.position]), move.num_hiddens, move.base, move.dtype)[0]
    M = move.matrix().T if mirrored else move.matrix()
    rotated = (M @ start).double().unflatten(0, (-1, 2))[move.pair].numpy()
    turn = float(move.offset * move.omega()[move.pair])
    names = chapter.words.group("figure") | {"turn": chapter.words("figure.turn", **about_pair(move))}
    return rotation_figure(path, rotated, turn, move.position, move.pair, names, with_move)


def _claims(chapter: Chapter, move: Move, mirrored: bool = False) -> None:
    shape = move.num_hiddens, POSITIONS, move.base, move.dtype
    bound = rounding_bound(len(POSITIONS) + abs(move.offset), move.dtype)
    with chapter.claim_row("claims-main"):
        residuals = projection_residual(move.offset, *shape, mirrored)
        chapter.claim("moves", float(residuals.max()), bound, count=f"{len(POSITIONS):,}")
        chapter.claim("constant", lambda: rotation_spread(move.offset, *shape), bound, count=f"{len(POSITIONS):,}")


def matrix_and_pairs(chapter: Chapter, move: Move) -> None:
    """Draw every pair as a clock beside the whole matrix."""
    for_pairs, for_matrix = st.columns(2)
    with for_pairs:
        all_pairs(chapter, move)
    with for_matrix:
        matrix(chapter, move)


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
