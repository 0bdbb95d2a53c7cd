"""The main figure: every head's map; with an error, intact and broken side by side."""

from __future__ import annotations

import re
from functools import cache

import streamlit as st

from pages.multi_head.figures import heads_figure
from pages.multi_head.inputs import LayerInputs
from ui.chapter.chapter import Chapter
from viz_core.lessons.multi_head.broken import residuals, variant
from viz_core.lessons.multi_head.steps import rounding_bound
from viz_core.maps.contribution_shares import shares_of_call
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook_file import recording_source

_ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms
_MOST_MAPS = 8  # beside each other in half the width


def main_figure(chapter: Chapter, layer_inputs: LayerInputs, broken: str, setting: str) -> None:
    """Draw the maps and their claims with this setting, "" for the correct layer."""
    if broken:
        _small_maps(chapter, layer_inputs, setting)
    else:
        _view(chapter, layer_inputs)
    layer, steps = layer_inputs.layer, layer_inputs.steps
    off = cache(lambda: residuals(layer, steps, setting))
    limit = rounding_bound(steps)
    with chapter.claim_row("main"):
        chapter.claim("torch", lambda: off()[0], limit)
        chapter.claim("torch-weights", lambda: off()[1], limit, heads=layer_inputs.num_heads)
        chapter.claim("rows", lambda: _row_error(layer_inputs, setting), _ROUNDING)


def open_head(chapter: Chapter, layer_inputs: LayerInputs) -> int:
    """Return the number of the head that is open in the attention view, which holds it in the URL."""
    found = re.fullmatch(r"heads\.0\.(\d{1,3})", st.query_params.get(chapter.controls.key("head"), ""))
    head = int(found[1]) if found else 0
    return head if head < layer_inputs.num_heads else 0


def _row_error(layer_inputs: LayerInputs, setting: str) -> float:
    weights = variant(layer_inputs.layer, layer_inputs.steps, setting).weights
    return float((weights.sum(dim=-1) - 1).abs().max())


def _view(chapter: Chapter, layer_inputs: LayerInputs) -> None:
    labels = chapter.words.group("view")
    names = layer_inputs.tokens.labels
    contribution_kind = chapter.contributions_choice()
    call = layer_inputs.steps.call
    if contribution_kind:
        call = shares_of_call(call, layer_inputs.layer.W_o, in_lengths=contribution_kind == "lengths")
    group = MapGroup(
        "heads",
        labels["heads"],
        labels["tokens"],
        labels["tokens"],
        names,
        names,
        (call,),
        rows_sum_to_one=contribution_kind != "lengths",
    )
    chapter.attention_view(
        (group,),
        run_source=lambda: recording_source((group,)),
        contribution_kind=contribution_kind,
        head_param=chapter.controls.key("head"),
        pin_param=chapter.controls.key("pin"),
    )


def _small_maps(chapter: Chapter, layer_inputs: LayerInputs, setting: str) -> None:
    weights = variant(layer_inputs.layer, layer_inputs.steps, setting).weights[0]
    sums = weights.sum(dim=-1)
    chapter.figure(
        "variant",
        heads_figure(weights[:_MOST_MAPS].numpy(), chapter.words.group("figure")),
        shown=min(_MOST_MAPS, len(weights)),
        heads=len(weights),
        peak=f"{float(weights.amax(dim=-1).mean()):.2f}",
        least=f"{float(sums.min()):.2f}",
        most=f"{float(sums.max()):.2f}",
    )
