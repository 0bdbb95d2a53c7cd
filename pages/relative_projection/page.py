"""Relative projection: one matrix moves every position by the same offset."""

from functools import cache

import streamlit as st

from pages.relative_projection.learning import learning
from pages.relative_projection.move import choose_move, readout
from pages.relative_projection.number_types import number_types
from pages.relative_projection.predictions import THE_HAND, place_the_hand
from pages.relative_projection.proof import STEPS, composed, proof, residuals
from pages.relative_projection.rotation import all_pairs, matrix, rotation
from pages.relative_projection.sources import sources
from ui.chapter.chapter import Chapter
from viz_core.lessons.relative_projection.broken import mirrored_residual
from viz_core.lessons.relative_projection.fitted_projection import fitted_projection
from viz_core.lessons.relative_projection.precision import naive_residual
from viz_core.lessons.relative_projection.proof import (
    POSITIONS,
    projection_residual,
    proof_lines,
    rotation_spread,
    rounding_bound,
    transpose_residual,
)
from viz_core.positional import relative_projection, sinusoidal_rows

chapter = Chapter("relative-projection")
chapter.question()
asks = chapter.hides_answer("hand", THE_HAND)
with chapter.card("rotation"):
    picture, side = st.columns([3, 2], gap="large")
    with side:
        move = choose_move(chapter)
        if not asks:
            readout(chapter, move)
    with picture:
        figure = rotation(chapter, move, asks)

place_the_hand(chapter)

chapter.heading("all")
for_pairs, for_matrix = st.columns(2)
with for_pairs:
    all_pairs(chapter, move)
with for_matrix:
    matrix(chapter, move)

chapter.heading("proof")
proof(chapter, move)

shape = move.num_hiddens, POSITIONS, move.base, move.dtype
bound = rounding_bound(len(POSITIONS) + abs(move.offset), move.dtype)
residual = cache(lambda: projection_residual(move.offset, *shape))
with chapter.claims():
    moves = (lambda: mirrored_residual(move.offset, *shape)) if chapter.break_and_explain("mirrored") else residual
    chapter.claim("moves", lambda: float(moves().max()), bound, count=f"{len(POSITIONS):,}")
    chapter.claim("constant", lambda: rotation_spread(move.offset, *shape), bound, count=f"{len(POSITIONS):,}")
    chapter.claim("compose", lambda: composed(move), bound, steps=list(map(str, STEPS)))
    chapter.claim("transpose", lambda: transpose_residual(move.offset, move.num_hiddens, move.base, move.dtype), bound)
chapter.text("residual")
chapter.lazy("residuals", lambda: residuals(chapter, move, residual(), bound), 440)

chapter.tabs(types=lambda: number_types(chapter, move), learn=lambda: learning(chapter, move))

chapter.exercise("wavelength")
sources(chapter)
chapter.code(
    relative_projection,
    sinusoidal_rows,
    proof_lines,
    projection_residual,
    rotation_spread,
    fitted_projection,
    naive_residual,
    rounding_bound,
)
chapter.downloads(
    {"matrix": lambda: move.matrix().double().numpy(), "residual": lambda: residual().numpy()}, figure=figure
)
chapter.next()
