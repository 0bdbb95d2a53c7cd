"""Scores to edit, their masked softmax and its gradient, and claims about them."""

import math
import re
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from torch import Tensor

from pages.scoring_functions.figures import number_grid
from pages.scoring_functions.parts import THE_ROW, row_names, shade_the_row
from pages.scoring_functions.typed_numbers import TypedNumbersError, read_batches, read_lengths
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape, join_sentences
from ui.text.numbers import localised
from viz_core.lessons.scoring_functions.mask_variants import (
    MaskedSoftmax,
    MaskRun,
    gradient_without_delta,
    masked_scores,
    written_by_the_book,
)

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


def masked_softmax_card(chapter: Chapter) -> MaskedSoftmax | None:
    """Scores and lengths to type, the weights and the gradient beside them; None where they cannot be read.

    While the reader draws the row of weights it is higher, and weights and gradient are hidden.
    """
    hide_answer = chapter.hides_answer("row", THE_ROW)
    with chapter.card("softmax"):
        typed, seen = st.columns([2, 3], gap="large")
        with typed:
            scores, valid_lens = _read_scores(chapter)
        with seen:
            shade_the_row(chapter)
            if scores is None:
                return None
            weights, below = st.container(), st.container()
            with below:  # the key is chosen under the weights
                masked = masked_scores(scores, valid_lens, _chosen_key(chapter, scores.shape[-1]))
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


def _read_scores(chapter: Chapter) -> tuple[Tensor | None, Tensor | None]:
    """The typed scores and lengths; where they cannot be read, a warning and the text as typed."""
    controls = chapter.controls
    text = controls.text("scores", _in_language(SCORES, chapter.words.language), height=170)
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
        values: dict[str, object] = {
            name: escape(value[:40]) if isinstance(value, str) else value for name, value in error.values.items()
        }
        if "what" in error.values:
            values["what"] = chapter.words(f"typed.{error.values['what']}")
        st.warning(chapter.words(f"typed.{error.reason}", **values), icon=":material/edit:")
        return None, None


def _in_language(numbers: str, language: str) -> str:
    """Typed numbers with the signs of a language."""
    return re.sub(r"-?[\d.]+", lambda number: localised(number[0], language), numbers)


def _put(chapter: Chapter, scores: str, lengths: str) -> None:
    st.session_state[chapter.controls.key("scores")] = _in_language(scores, chapter.words.language)
    st.session_state[chapter.controls.key("lengths")] = lengths


def _chosen_key(chapter: Chapter, keys: int) -> int:
    return int(chapter.controls.number("key", 1, keys, min(2, keys))) - 1


def _say_shape(chapter: Chapter, masked: MaskedSoftmax) -> None:
    kind = "none" if masked.valid_lens is None else ("row" if masked.valid_lens.dim() == 1 else "query")
    batch, queries, keys = masked.scores.shape
    shape = chapter.words("shape", batch=batch, queries=queries, keys=keys)
    st.caption(join_sentences([shape, chapter.words(f"shape.{kind}")]))


def _say_empty(chapter: Chapter, masked: MaskedSoftmax) -> None:
    """Name the rows in which every key is masked."""
    if masked.empty_rows:
        names = [row_names(chapter, masked)[row] for row in masked.empty_rows]
        st.info(chapter.words("all-masked", rows=names), icon=":material/visibility_off:")


def _grid(chapter: Chapter, masked: MaskedSoftmax, values: Tensor, limit: float | None, high: int = _ROW) -> go.Figure:
    names = chapter.words.group("figure")
    batch, queries, num_keys = masked.scores.shape
    rows = [f"{b + 1} · {q + 1}" for b in range(batch) for q in range(queries)]
    keys = [str(key + 1) for key in range(num_keys)]
    cells, shown = values.flatten(0, 1).numpy(), masked.allowed.flatten(0, 1).numpy()
    return number_grid(cells, rows, keys, names["key"], names["batch-query"], shown=shown, limit=limit, cell=high)


def weights_picture(chapter: Chapter, masked: MaskedSoftmax, high: int = _ROW, hide_answer: bool = False) -> go.Figure:
    """The weights as a grid, its rows `high` pixels high; without numbers while the answer is hidden."""
    weights = masked.weights * math.nan if hide_answer else masked.weights
    return _grid(chapter, masked, weights, None, high)


def _gradient_picture(chapter: Chapter, masked: MaskedSoftmax) -> go.Figure:
    return _grid(chapter, masked, masked.gradient, 0.25)  # the largest a (1 - a)


def _summary(chapter: Chapter, masked: MaskedSoftmax) -> dict[str, list[str]]:
    rows = masked.weights.flatten(0, 1).tolist()
    names = row_names(chapter, masked)
    return {name: [f"{weight:.4f}" for weight in row] for name, row in zip(names, rows, strict=True)}


def _counts(masked: MaskedSoftmax) -> dict[str, Any]:
    return {"hidden": masked.num_masked, "cells": masked.allowed.numel()}


def claims(chapter: Chapter, masked: MaskedSoftmax | None, runs: dict[str, list[MaskRun]] | None) -> str:
    """Claims about the typed numbers, some of which fail where the reader breaks the code; returns what is broken."""
    if masked is None:
        return ""
    with chapter.claims():
        broken = chapter.break_it("book-mask", "no-delta", part="mask")
        without_delta = gradient_without_delta(masked.weights, masked.key) if broken == "no-delta" else None
        if without_delta is not None:
            figure = _grid(chapter, masked, without_delta, 0.25)
            chapter.figure("broken-gradient", figure, key=masked.key + 1)
        gradient = masked.gradient if without_delta is None else without_delta
        wrote = written_by_the_book(masked.scores, masked.valid_lens) if broken == "book-mask" else masked.changed
        chapter.claim("sums", masked.sum_error, ROUNDING)
        chapter.claim("hidden", masked.masked_weight, 0.0, count=masked.num_masked)
        chapter.claim("formula", masked.gradient_error(without_delta), ROUNDING)
        chapter.claim("zero-sum", float(gradient.sum(dim=-1).abs().max()), ROUNDING)
        chapter.claim("unwritten", wrote, 0.0)
        if runs is not None:
            leaks = [run.leak for run in runs["book-float32" if broken == "book-mask" else "guarded-float32"]]
            chapter.claim("guarded", max(leaks), 0.0, last=len(leaks) - 1)
    return broken
