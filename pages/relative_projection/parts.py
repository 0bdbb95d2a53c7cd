"""The relative-projection chapter's parts: one move, its controls, pictures and proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
import torch
from torch import Tensor

from pages.relative_projection import figures
from pages.relative_projection.rotation_figure import pairs_figure, rotation_figure, shown_pairs
from ui.chapter import Chapter
from viz_core.lessons.relative_projection.fitted_projection import FitErrors, fit_errors
from viz_core.lessons.relative_projection.precision import precision_curves
from viz_core.lessons.relative_projection.proof import proof_lines, rounding_bound
from viz_core.positional import angular_frequencies, relative_projection, sinusoidal_rows

TYPES = {name: getattr(torch, name) for name in ("float64", "float32", "bfloat16", "float16")}
_WIDTHS = (*range(4, 34, 2), 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512)  # even: an odd one has a lone sine
_REACHES = (100, 1_000, 10_000, 100_000, 1_000_000)
_MOST_DIMENSIONS = 64  # of the matrix in one heatmap, so that its blocks can be seen
_FAR = 100_000  # how far the number types are followed


@dataclass(frozen=True)
class Move:
    """What the reader chose: a step by `offset` from `position`, and the pair to look at."""

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


def ask_move(chapter: Chapter) -> Move:
    controls = chapter.controls
    offset = controls.slider("offset", -100, 100, 5)
    position = controls.slider("position", 0, 200, 3)
    num_hiddens = controls.stops("width", _WIDTHS, 32)
    last = num_hiddens // 2 - 1
    pair = controls.slider("pair", 0, last, min(3, last))
    with controls.more():
        base = controls.number("base", 2, 1_000_000, 10_000)
        number_type = controls.choice("type", tuple(TYPES), "float64")
    return Move(int(offset), int(position), int(pair), num_hiddens, float(base), number_type)


def readout(chapter: Chapter, move: Move) -> None:
    """The chosen pair in numbers."""
    chapter.text("readout", omega=f"{float(move.omega()[move.pair]):.5g}", **_about_pair(move))


def rotation(chapter: Chapter, move: Move) -> go.Figure:
    """The chosen pair on its circle."""
    step = 1 if move.offset >= 0 else -1
    path = move.pairs(*range(move.position, move.position + move.offset + step, step))[:, move.pair]
    start = sinusoidal_rows(torch.tensor([move.position]), move.num_hiddens, move.base, move.dtype)[0]
    moved = (move.matrix() @ start).double().unflatten(0, (-1, 2))[move.pair].numpy()
    turn = float(move.offset * move.omega()[move.pair])
    figure = rotation_figure(path, moved, turn, move.position, move.pair, chapter.words.group("figure"))
    chapter.figure("rotation", figure, **_about_pair(move))
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
        pairs_figure(start, arrived, turns, shown, move.pair, chapter.words.group("figure")),
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
        figures.matrix_figure(cut, first, move.pair, chapter.words.group("figure")),
        low=first,
        high=first + size - 1,
        width=move.num_hiddens,
        pair=move.pair,
        cosine=f"{cosine:.3f}",
        sine=f"{sine:.3f}",
    )


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
        write = _number if line.name == "product" else _factor
        filled_in = {key: write(value) for key, value in numbers.items()}
        result = {"sine": _number(line.result[0]), "cosine": _number(line.result[1])}
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


def residuals(chapter: Chapter, move: Move, residual: Tensor, bound: float) -> None:
    """The residual at every position, on a log axis."""
    chapter.text("residual")
    chapter.figure(
        "residual",
        figures.residual_figure(residual.numpy(), bound, chapter.words.group("figure")),
        count=f"{len(residual):,}",
        largest=f"{float(residual.max()):.2g}",
        zeros=f"{int((residual == 0).sum()):,}",
        bound=f"{bound:.2g}",
        type=move.type,
    )


def learning(chapter: Chapter, move: Move) -> None:
    """A matrix fitted to rows of the table, by how far the table reaches."""
    chapter.text("learn", offset=move.offset, samples=f"{max(256, 2 * move.num_hiddens):,}")
    reach = chapter.controls.stops("reach", _REACHES, 100_000)
    fits = _fits(move.offset, move.num_hiddens, move.base)
    fit = next(fit for fit in fits if fit.reach == reach)
    longest = 2 * math.pi / float(move.omega()[-1])
    chapter.text("rank", last=f"{reach - 1:,}", rank=fit.rank, width=move.num_hiddens)
    with st.container(horizontal=True, key="claims-learn"):
        chapter.claim("seen", fit.seen, 1e-9)
        chapter.claim("unseen", fit.unseen, 1e-6, reach=f"{reach:,}")
        chapter.claim("learned", fit.difference, 1e-6)
    chapter.figure(
        "fit",
        figures.fit_figure(fits, longest, chapter.words.group("figure")),
        reach=f"{reach:,}",
        seen=f"{fit.seen:.2g}",
        unseen=f"{fit.unseen:.2g}",
        difference=f"{fit.difference:.2g}",
        longest=f"{longest:,.0f}",
    )


def number_types(chapter: Chapter, move: Move) -> None:
    """How each number type degrades with position."""
    chapter.text("types")
    curves = {}
    excess = []
    for name, dtype in TYPES.items():
        positions, rounded, naive = precision_curves(move.offset, move.num_hiddens, dtype, move.base, _FAR)
        curves[name] = (positions.numpy(), rounded.numpy(), naive.numpy())
        excess.append(float(rounded.max()) / rounding_bound(_FAR + abs(move.offset), dtype))
    ends: dict[str, Any] = {name: f"{curve[2][-1]:.2g}" for name, curve in curves.items()}
    chapter.figure(
        "types",
        figures.precision_figure(curves, chapter.words.group("figure")),
        limit=f"{_FAR:,}",
        **ends,
    )
    with st.container(horizontal=True, key="claims-types"):
        chapter.claim("rounded", max(excess), 1.0, limit=f"{_FAR:,}")


@st.cache_data(max_entries=64, show_spinner=False)
def _fits(offset: int, num_hiddens: int, base: float) -> tuple[FitErrors, ...]:
    return tuple(fit_errors(offset, num_hiddens, reach, base) for reach in _REACHES)


def _about_pair(move: Move) -> dict[str, Any]:
    start, arrived = move.pairs(move.position, move.position + move.offset)[:, move.pair]
    omega = float(move.omega()[move.pair])
    turns = move.offset * omega / (2 * math.pi)
    return {
        "pair": move.pair,
        "last": move.num_hiddens // 2 - 1,
        "position": move.position,
        "end": move.position + move.offset,
        "wavelength": f"{2 * math.pi / omega:,.2f}",
        "degrees": f"{360 * turns:,.1f}".replace("-", "−"),
        "turns": f"{turns:.3g}".replace("-", "−"),
        "start": ", ".join(map(_number, start)).replace("-", "−"),
        "arrived": ", ".join(map(_number, arrived)).replace("-", "−"),
    }


def _number(value: float) -> str:
    return f"{round(float(value), 4) + 0.0:.4f}"


def _factor(value: float) -> str:
    """A number as it stands in a product or a sum: in brackets where it is negative."""
    number = _number(value)
    return f"({number})" if number.startswith("-") else number
