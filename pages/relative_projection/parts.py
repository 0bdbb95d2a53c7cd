"""Parts of the page: the move and its pair, the rotation, the proof, predictions and sources."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
import torch
from PIL import Image
from torch import Tensor

from pages.relative_projection.figures import (
    in_turns,
    matrix_figure,
    pairs_figure,
    residual_figure,
    rotation_figure,
    shown_pairs,
)
from ui.blocks.over_picture import signed_image
from ui.chapter.chapter import Chapter
from ui.text.numbers import Point
from ui.widgets.predictions import Board, OnFigure, Truth
from viz_core.lessons.relative_projection import (
    POSITIONS,
    composition_residual,
    projection_residual,
    proof_lines,
    rotation_spread,
    rounding_bound,
    transpose_residual,
)
from viz_core.positional import angular_frequencies, relative_projection, sinusoidal_rows, sinusoidal_table
from viz_core.pretrained.samples import default_words

TYPES = {name: getattr(torch, name) for name in ("float64", "float32", "bfloat16", "float16")}
_WIDTHS = (*range(4, 34, 2), 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512)  # even: an odd one has a lone sine


@dataclass(frozen=True)
class Move:
    """The reader's choice: a step by `offset` from `position`, and a pair of dimensions."""

    offset: int
    position: int
    pair: int
    num_hiddens: int
    base: float
    type: str

    @property
    def dtype(self) -> torch.dtype:
        return TYPES[self.type]

    def matrix(self) -> Tensor:
        return relative_projection(self.offset, self.num_hiddens, self.base).to(self.dtype)

    def omega(self) -> Tensor:
        return angular_frequencies(self.num_hiddens, self.base)

    def pairs(self, *positions: int) -> np.ndarray:
        """(positions, pairs, 2): sine and cosine of every pair, rounded to the type."""
        rows = sinusoidal_rows(torch.tensor(positions), self.num_hiddens, self.base, self.dtype)
        return rows.double().unflatten(1, (-1, 2)).numpy()


def choose_move(chapter: Chapter) -> Move:
    controls = chapter.controls
    offset = controls.slider("offset", -100, 100, 5)
    position = controls.slider("position", 0, 200, 3)
    with controls.more():
        num_hiddens = controls.select_slider("width", _WIDTHS, 32)
        base = controls.number("base", 2, 1_000_000, 10_000)
        number_type = controls.choice("type", tuple(TYPES), "float64")
        last = num_hiddens // 2 - 1
        pair = controls.slider("pair", 0, last, min(3, last))
    return Move(int(offset), int(position), int(pair), num_hiddens, float(base), number_type)


def readout(chapter: Chapter, move: Move) -> None:
    """The chosen pair in numbers."""
    chapter.text("readout", omega=f"{float(move.omega()[move.pair]):.5g}", **about_pair(move))


def about_pair(move: Move) -> dict[str, Any]:
    start, arrived = move.pairs(move.position, move.position + move.offset)[:, move.pair]
    omega = float(move.omega()[move.pair])
    turn = move.offset * omega
    return {
        "pair": move.pair,
        "last": move.num_hiddens // 2 - 1,
        "position": move.position,
        "end": move.position + move.offset,
        "wavelength": f"{2 * math.pi / omega:,.2f}",
        "degrees": f"{math.degrees(turn):,.1f}",
        "turns": in_turns(turn),
        "start": _point(start),
        "arrived": _point(arrived),
    }


def _point(pair: np.ndarray) -> Point:
    return Point(map(decimals, pair))


def decimals(value: float) -> str:
    return f"{round(float(value), 4) + 0.0:.4f}"


THE_HAND = OnFigure(
    Board("star", (-1.42, 1.42), -1.42, 1.42), "rotation", {"offset": 2, "position": 0, "pair": 0, "type": "float64"}
)


def place_the_hand(chapter: Chapter) -> None:
    """Let the reader place the fastest pair at position 2 on the circle that shows it at position 0."""
    chapter.draw_on_figure("hand", THE_HAND, hand)


def hand() -> Truth:
    """The correct hand, and four mistakes: sine and cosine swapped, turned back, one step short, in degrees."""
    _, one, two = sinusoidal_table(3, 2, dtype=torch.float64).numpy()
    degrees = np.radians(2.0)
    mistakes = {
        "swapped": two[::-1].copy(),
        "back": two * [-1, 1],
        "one": one,
        "degrees": np.array([np.sin(degrees), np.cos(degrees)]),
    }
    return Truth(two, mistakes)


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


_MAX_DIMENSIONS = 64  # of the matrix in one heatmap, so that its blocks can be seen


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
    return rotation_figure(path, rotated, turn, move.position, move.pair, names, with_move, default_words())


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
    size = min(move.num_hiddens, _MAX_DIMENSIONS)
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


def sources(chapter: Chapter) -> None:
    """The matrix of the first pair, whose frequency is 1, for an offset of 1."""
    chapter.sources({"pair": relative_projection(1, 2).to(torch.float64).flatten().tolist()})


def gallery_picture() -> Image.Image:
    """The matrix that moves positions by five."""
    return signed_image(relative_projection(5, 16).float().numpy(), 1.0)
