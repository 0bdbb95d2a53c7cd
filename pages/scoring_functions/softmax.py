"""Scores to edit, their masked softmax and its gradient, and what must be true of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st
import torch
from torch import Tensor

from pages.scoring_functions.predictions import THE_ROW, shade_the_row
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.attention import length_mask, masked_softmax
from viz_core.figures.number_grid import number_grid
from viz_core.lessons.scoring_functions.broken import gradient_without_delta, written_by_the_book
from viz_core.lessons.scoring_functions.mask_recipes import MaskRun
from viz_core.lessons.scoring_functions.softmax_gradient import weight_gradient, weight_gradient_by_formula
from viz_core.lessons.scoring_functions.typed_numbers import TypedNumbersError, read_batches, read_lengths

SCORES = "0 1 7 -3\n-2 0.5 1 0\n\n1 1 1 1\n0 3 0.5 -2"
# Scores and valid lengths that a button puts in place of the reader's.
EXAMPLES = {
    "book": (SCORES, "2 3"),
    "each": (SCORES, "1 3; 2 4"),
    "blind": (SCORES, "0 4; 2 1"),
    "none": (SCORES, ""),
    "sentences": ("0 0 0 0\n\n0 0 0 0\n\n0 0 0 0", "4 3 2"),
}
ROUNDING = 1e-6
_ROW, _HIGH = 38, 130  # pixels of a row, and of one that is drawn on


@dataclass(frozen=True, eq=False)
class Masked:
    """The reader's scores and what masked softmax makes of them."""

    scores: Tensor
    valid_lens: Tensor | None
    weights: Tensor
    gradient: Tensor
    key: int  # whose weight the gradient pulls up, from 0
    changed: float  # by how much the call changed its input

    @property
    def allowed(self) -> Tensor:
        """(batch, queries, keys): where a query may look."""
        if self.valid_lens is None:
            return torch.ones_like(self.scores, dtype=torch.bool)
        return length_mask(self.valid_lens, *self.scores.shape).expand(self.scores.shape)

    def rows(self, values: Tensor) -> Tensor:
        """Batch rows one under the other."""
        return values.flatten(0, 1)


def masked_softmax_card(chapter: Chapter) -> Masked | None:
    """Scores and lengths to type, the weights and the gradient beside them; None where they cannot be read.

    Who draws the row of weights finds it high enough for that, and neither weights nor gradient before.
    """
    hide_answer = chapter.hides_answer("row", THE_ROW)
    with chapter.card("softmax"):
        typed, seen = st.columns([2, 3], gap="large")
        with typed:
            scores, valid_lens = _ask(chapter)
        with seen:
            shade_the_row(chapter)
            if scores is None:
                return None
            weights, below = st.container(), st.container()
            with below:  # the key is asked for under the weights it belongs to
                masked = _look(chapter, scores, valid_lens)
            with weights:
                _say_shape(chapter, masked)
                figure = weights_picture(chapter, masked, _HIGH if chapter.is_drawn_on("row") else _ROW, hide_answer)
                summary = _summary(chapter, masked)
                chapter.figure("weights", figure, hide_answer=hide_answer, summary=summary, **_counts(masked))
                _say_empty(chapter, masked)
            if hide_answer:
                return masked
            chapter.figure("gradient", _gradient_picture(chapter, masked), key=masked.key + 1, **_counts(masked))
    return masked


def _ask(chapter: Chapter) -> tuple[Tensor | None, Tensor | None]:
    """What the reader typed, read; a sentence where it cannot be, and the text stays."""
    controls = chapter.controls
    text = controls.text_area("scores", SCORES, 170)
    lengths = controls.text("lengths", "2 3", placeholder=chapter.words("lengths.placeholder"))
    st.caption(chapter.words("typing"))
    with st.container(horizontal=True, gap="xsmall", key="examples"):
        for name, example in EXAMPLES.items():
            st.button(
                chapter.words(f"example.{name}"),
                key=controls.key(f"example-{name}"),
                on_click=_put,
                args=(chapter, *example),
            )
    try:
        scores = read_batches(text)
        return scores, read_lengths(lengths, *scores.shape)
    except TypedNumbersError as error:
        values = {name: escape(str(value)[:40]) for name, value in error.values.items()}
        if "what" in error.values:
            values["what"] = chapter.words(f"typed.{error.values['what']}")
        st.warning(chapter.words(f"typed.{error.reason}", **values), icon=":material/edit:")
        return None, None


def _put(chapter: Chapter, scores: str, lengths: str) -> None:
    st.session_state[chapter.controls.key("scores")] = scores
    st.session_state[chapter.controls.key("lengths")] = lengths


def _look(chapter: Chapter, scores: Tensor, valid_lens: Tensor | None) -> Masked:
    keys = scores.shape[-1]
    key = int(chapter.controls.number("key", 1, keys, min(2, keys))) - 1
    given = scores.clone()
    weights = masked_softmax(given, valid_lens)
    gradient = weight_gradient(scores, valid_lens, key)
    return Masked(scores, valid_lens, weights, gradient, key, float((given - scores).abs().max()))


def _say_shape(chapter: Chapter, masked: Masked) -> None:
    kind = "none" if masked.valid_lens is None else ("row" if masked.valid_lens.dim() == 1 else "query")
    batch, queries, keys = masked.scores.shape
    st.caption(chapter.words(f"shape.{kind}", batch=batch, queries=queries, keys=keys))


def _say_empty(chapter: Chapter, masked: Masked) -> None:
    """Which rows may see no key at all."""
    blind = masked.rows(~masked.allowed.any(dim=-1, keepdim=True))[:, 0].nonzero()[:, 0].tolist()
    if blind:
        names = [row_names(chapter, masked)[row] for row in blind]
        st.info(chapter.words("all-masked", rows=names), icon=":material/visibility_off:")


def row_names(chapter: Chapter, masked: Masked) -> list[str]:
    batch, queries, _ = masked.scores.shape
    row = chapter.words.group("figure")["row"]
    return [row.format(batch=b + 1, query=q + 1) for b in range(batch) for q in range(queries)]


def _grid(chapter: Chapter, masked: Masked, values: Tensor, limit: float | None, high: int = _ROW) -> go.Figure:
    names = chapter.words.group("figure")
    batch, queries, num_keys = masked.scores.shape
    rows = [f"{b + 1} · {q + 1}" for b in range(batch) for q in range(queries)]
    keys = [str(key + 1) for key in range(num_keys)]
    shown = masked.rows(masked.allowed).numpy()
    return number_grid(
        masked.rows(values).numpy(), rows, keys, names["key"], names["batch-query"], shown=shown, limit=limit, cell=high
    )


def weights_picture(chapter: Chapter, masked: Masked, high: int = _ROW, hide_answer: bool = False) -> go.Figure:
    """The weights as a grid, its rows so many pixels high; no number in it where they are kept back."""
    weights = torch.full_like(masked.weights, torch.nan) if hide_answer else masked.weights
    return _grid(chapter, masked, weights, None, high)


def _gradient_picture(chapter: Chapter, masked: Masked) -> go.Figure:
    return _grid(chapter, masked, masked.gradient, 0.25)  # a (1 - a) is never more


def _summary(chapter: Chapter, masked: Masked) -> dict[str, list[str]]:
    rows = masked.rows(masked.weights).tolist()
    names = row_names(chapter, masked)
    return {name: [f"{weight:.4f}" for weight in row] for name, row in zip(names, rows, strict=True)}


def _counts(masked: Masked) -> dict[str, Any]:
    return {"hidden": int((~masked.allowed).sum()), "cells": masked.allowed.numel()}


def claims(chapter: Chapter, masked: Masked | None, runs: dict[str, list[MaskRun]] | None) -> str:
    """What must be true of the reader's own numbers, or fails where the reader broke it; the setting that breaks it."""
    if masked is None:
        return ""
    sums = masked.weights.sum(dim=-1)
    seeing = masked.allowed.any(dim=-1)
    hidden = masked.weights[~masked.allowed]
    with chapter.claims():
        broken = chapter.break_it("book-mask", "no-delta", "no-root")
        formula = (gradient_without_delta if broken == "no-delta" else weight_gradient_by_formula)(
            masked.weights, masked.key
        )
        gradient = formula if broken == "no-delta" else masked.gradient
        wrote = written_by_the_book(masked.scores, masked.valid_lens) if broken == "book-mask" else masked.changed
        chapter.claim("sums", float((sums - seeing.float()).abs().max()), ROUNDING)
        chapter.claim("hidden", float(hidden.max()) if len(hidden) else 0.0, 0.0, count=len(hidden))
        chapter.claim("formula", float((masked.gradient - formula).abs().max()), ROUNDING)
        chapter.claim("zero-sum", float(gradient.sum(dim=-1).abs().max()), ROUNDING)
        chapter.claim("unwritten", wrote, 0.0)
        if runs is not None:
            leaks = [run.leak for run in runs["book-float32" if broken == "book-mask" else "guarded-float32"]]
            chapter.claim("guarded", max(leaks), 0.0, last=len(leaks) - 1)
    return broken
