"""Inputs of the chapter: a step from a position, and a pair of dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pages.relative_projection.rotation_figure import in_turns
from ui.chapter.chapter import Chapter
from ui.text.numbers import Point
from viz_core.positional import angular_frequencies, relative_projection, sinusoidal_rows

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
