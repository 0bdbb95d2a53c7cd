"""The flow of shapes from input to output."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.multi_head import figures
from pages.multi_head.inputs import LayerInputs
from ui.chapter.chapter import Chapter
from ui.widgets.heatmap import signed_heatmap
from viz_core.lessons.multi_head.steps import rounding_bound, walk_residual


def flow(chapter: Chapter, layer_inputs: LayerInputs, head: int) -> None:
    """The shapes from input to output, and the numbers in the chosen tensor."""
    layer, steps = layer_inputs.layer, layer_inputs.steps
    d, h = layer_inputs.num_hiddens, layer_inputs.num_heads
    chapter.text("mathematics", d=d, h=h, w=d // h)
    names = chapter.words.group("option") | chapter.words.group("figure")
    tensors = layer_inputs.steps.tensors()
    picture, numbers = st.columns([5, 6], gap="large")
    with numbers:
        chosen = chapter.controls.select("stage", tuple(tensors), "split_queries")
        values = tensors[chosen][0]
        n, d = layer_inputs.inputs.shape[1:]
        sizes = {"n": n, "d": d, "h": layer_inputs.num_heads, "w": d // layer_inputs.num_heads, "head": head + 1}
        chapter.text(f"stage-{chosen}", **sizes)
        in_heads = values.dim() == 3
        shown = values[head] if in_heads else values
        across = names["key"] if chosen in {"scores", "masked", "exponentials", "weights"} else names["dimension"]
        labels = layer_inputs.tokens.labels
        heatmap = partial(signed_heatmap, shown, names["token"], across, labels)
        chapter.heatmap("stage", heatmap, rows=shown.shape[0], columns=shown.shape[1], stage=names[chosen])
        if in_heads:
            st.caption(chapter.words("stage-head", head=head + 1, heads=layer_inputs.num_heads))
    with picture:
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        figure = partial(figures.flow_figure, shapes, layer_inputs.num_heads, chosen, names)
        summary = [f"{names[name]} {shape}" for name, shape in shapes.items()]
        chapter.figure("flow", figure, height=800, summary=summary)
    with chapter.claim_row("claims-flow"):
        chapter.claim("walk", lambda: walk_residual(layer, steps), rounding_bound(steps))
