"""Multi-head attention: every head's map, what breaks it, distances of heads, shapes, costs, and torch's own module."""

from functools import partial

import streamlit as st

from pages.multi_head.inputs import layer_controls, make_layer
from pages.multi_head.parts import ANSWERS, cost, flow, main_figure, open_head, ranges, toy
from ui.chapter.chapter import Chapter
from viz_core.attention import DotProductAttention, MultiHeadAttention
from viz_core.lessons.multi_head import (
    ERRORS,
    book_toy,
    mean_ranges,
    multi_head_cost,
    multi_head_steps,
    torch_multi_head,
    variant,
)
from viz_core.trace import attend, attention_weights


def code(chapter: Chapter) -> None:
    """Source code and downloads."""
    chapter.code(
        MultiHeadAttention,
        attention_weights,
        DotProductAttention,
        multi_head_steps,
        torch_multi_head,
        variant,
        mean_ranges,
        multi_head_cost,
        book_toy,
        attend,
    )
    weights = layer_inputs.steps.weights[0]
    chapter.downloads(
        {
            "weights": weights[head].numpy(),
            "all_weights": weights.numpy(),
            "output": layer_inputs.steps.output[0].numpy(),
        },
        rows=layer_inputs.tokens.labels,
        columns=layer_inputs.tokens.labels,
    )


chapter = Chapter("multi-head")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    with chapter.main_controls():
        request = layer_controls(chapter)
        broken = chapter.break_it(*ERRORS)
    layer_inputs = chapter.require(make_layer(chapter, request))
    chapter.side_by_side(broken, partial(main_figure, chapter, layer_inputs, broken))
    if layer_inputs.note:
        st.caption(layer_inputs.note)
head = open_head(chapter, layer_inputs)

chapter.exercise("other", marks=ANSWERS)
chapter.takeaways()
chapter.next()
chapter.deeper(
    {
        "ranges": lambda: ranges(chapter, layer_inputs, head),
        "flow": lambda: flow(chapter, layer_inputs, head),
        "cost": lambda: cost(chapter, layer_inputs),
        "toy": lambda: toy(chapter),
        "code": lambda: code(chapter),
    }
)
