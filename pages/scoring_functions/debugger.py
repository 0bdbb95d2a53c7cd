"""The mask debugger: one row of scores through every variant at every length."""

from __future__ import annotations

from functools import partial

import streamlit as st
from torch import Tensor

from pages.scoring_functions.mask_figures import mask_figure
from pages.scoring_functions.softmax import row_names
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.scoring_functions.book_examples import book_weights
from viz_core.lessons.scoring_functions.mask_variants import MASK_VARIANTS, MaskRun, run_all
from viz_core.lessons.scoring_functions.masked_scores import MaskedSoftmax

SCALES = {f"times-{factor}": factor for factor in (1, 10, 1_000, 100_000, 10_000_000)}


def debugger(chapter: Chapter, masked: MaskedSoftmax | None) -> dict[str, list[MaskRun]] | None:
    """One row of scores through every variant at every length: the maps, and what went wrong in words."""
    if masked is None:
        chapter.text("debugger.waiting")
        return None
    chapter.text("debugger")
    rows = masked.scores.flatten(0, 1)
    which, factor = st.columns([1, 3], gap="medium")
    with which:
        row = int(chapter.controls.number("row", 1, len(rows), 1)) - 1
    with factor:
        scale = SCALES[chapter.controls.choice("scale", tuple(SCALES), "times-1")]
    scores = rows[row] * scale
    if scores.isinf().any():
        st.warning(chapter.words("scale-overflow", scale=f"{scale:,}"), icon=":material/edit:")
        return None
    chapter.text("debugger.row", row=row_names(chapter, masked)[row], scores=_numbers(scores))
    runs = run_all(scores)
    names = chapter.words.group("figure")
    with st.container(horizontal=True, gap="small", key="mask-variants"):
        for variant in MASK_VARIANTS:
            with st.container(border=True, width=300, gap="small", key=f"card-{variant.name}"):
                title = chapter.words(f"variant.{variant.way}")
                dtype = str(variant.dtype).removeprefix("torch.")
                st.markdown(f"**{title}** · {dtype}")
                lines = _verdicts(chapter, runs[variant.name])
                figure = partial(mask_figure, runs[variant.name], names)
                chapter.figure("mask", figure, height=200, variant=f"{title}, {dtype}")
                for line in lines:
                    st.markdown(line)
    chapter.guidance("masks")
    chapter.source_card("masked-softmax", lambda: book_weights().tolist())
    return runs


def _verdicts(chapter: Chapter, runs: list[MaskRun]) -> list[str]:
    """A line for each thing that happened, with the lengths at which it did."""
    lines = []
    for verdict in ("refused", "overflow", "nan", "leak"):
        hit = [run for run in runs if run.verdict == verdict]
        if hit:
            lengths = [str(run.length) for run in hit]
            leak = f"{max(run.leak for run in hit):.4g}"
            refusal = escape(hit[0].refusal)
            lines.append(chapter.words(f"verdict.{verdict}", lengths=lengths, leak=leak, refusal=refusal))
    if not lines:
        lines.append(chapter.words("verdict.fine"))
    if runs[0].variant.filler_overflows and runs[0].weights is not None:
        lines.append(chapter.words("verdict.filler"))
    lines.append(chapter.words("verdict.wrote" if any(run.wrote for run in runs) else "verdict.unwritten"))
    return lines


def _numbers(scores: Tensor) -> list[str]:
    return [f"{score:,.6g}".replace("-", "−") for score in scores.tolist()]
