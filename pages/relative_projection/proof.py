"""The proof line by line with the reader's numbers, and its residual at every position."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from pages.relative_projection.move import Move, decimals
from pages.relative_projection.residual_figures import residual_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.relative_projection.proof import (
    POSITIONS,
    composition_residual,
    projection_residual,
    proof_lines,
    rounding_bound,
    transpose_residual,
)

STEPS = (-3, 10)  # second offsets to put after the first


def proof(chapter: Chapter, move: Move) -> None:
    """Four lines: a title, the algebra beside the reader's numbers, and the residual of the line."""
    chapter.text(
        "proof",
        pair=move.pair,
        base=f"{move.base:.0f}",
        exponent=2 * move.pair,
        width=move.num_hiddens,
        omega=f"{float(move.omega()[move.pair]):.5g}",
        position=move.position,
        offset=move.offset,
        type=move.type,
    )
    tolerance = rounding_bound(move.position + abs(move.offset), move.dtype)
    lines = proof_lines(move.offset, move.position, move.pair, move.num_hiddens, move.base, move.dtype)
    for line in lines:
        name = f"proof-{line.name}"
        numbers = dict(line.numbers)
        if "sin_a" in numbers:
            numbers["minus_sin_a"] = -numbers["sin_a"]
        write = decimals if line.name == "product" else _factor
        filled_in = {key: write(value) for key, value in numbers.items()}
        result = {"sine": decimals(line.result[0]), "cosine": decimals(line.result[1])}
        with st.container(border=True, key=name):
            chapter.text(name)
            symbols, filled = st.columns([2, 3], vertical_alignment="center")
            with symbols:
                chapter.text(f"{name}.symbols")
            with filled:
                chapter.text(f"{name}.numbers", **filled_in, **result)
            chapter.claim(
                name,
                line.residual,
                tolerance,
                low=2 * move.pair,
                high=2 * move.pair + 1,
                arrived=move.position + move.offset,
            )
    chapter.text("after")
    bound = rounding_bound(len(POSITIONS) + abs(move.offset), move.dtype)
    with chapter.claim_row("claims-proof"):
        chapter.claim("compose", lambda: composed(move), bound, first=STEPS[0], second=STEPS[1])
        transposed = transpose_residual(move.offset, move.num_hiddens, move.base, move.dtype)
        chapter.claim("transpose", transposed, bound)
    chapter.text("residual")
    chapter.lazy("residuals", lambda: residuals(chapter, move, residuals_of(move), bound), 440)


def residuals_of(move: Move) -> Tensor:
    """Return the largest difference between M p and the true row, at every position."""
    return projection_residual(move.offset, move.num_hiddens, POSITIONS, move.base, move.dtype)


def composed(move: Move) -> float:
    """The largest residual of the matrix of two offsets, one after the other, against that of their sum."""
    return max(composition_residual(move.offset, b, move.num_hiddens, move.base, move.dtype) for b in STEPS)


def residuals(chapter: Chapter, move: Move, residual: Tensor, bound: float) -> None:
    """The residual at every position, on a log axis."""
    chapter.figure(
        "residual",
        residual_figure(residual.numpy(), bound, chapter.words.group("figure")),
        count=f"{len(residual):,}",
        largest=f"{float(residual.max()):.2g}",
        zeros=f"{int((residual == 0).sum()):,}",
        bound=f"{bound:.2g}",
        type=move.type,
    )
    chapter.finding("rounding", float(residual.max()) <= bound, type=move.type)


def _factor(value: float) -> str:
    """A number as it stands in a product or a sum: in brackets where it is negative."""
    number = decimals(value)
    return f"({number})" if number.startswith("-") else number
