"""Multi-head attention: width and heads, the flow of shapes, each head's map, what heads cost, torch's own module."""

from functools import cache, partial

from pages.multi_head.batching import batch
from pages.multi_head.book import ones, ranges, toy
from pages.multi_head.costs import cost
from pages.multi_head.flow import flow, maps
from pages.multi_head.inputs import choose_layer
from ui.chapter.chapter import Chapter
from viz_core.attention import DotProductAttention, MultiHeadAttention
from viz_core.lessons.multi_head.book_examples import book_toy
from viz_core.lessons.multi_head.broken import dealt_out, undivided, wrong_root
from viz_core.lessons.multi_head.costs import multi_head_cost
from viz_core.lessons.multi_head.steps import (
    multi_head_steps,
    one_head_at_a_time,
    rounding_bound,
    torch_multi_head,
    torch_residuals,
    walk_residual,
)
from viz_core.maps.residuals import row_sum_error
from viz_core.trace import attend, attention_weights

ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms

chapter = Chapter("multi-head")
chapter.question()
layer_inputs = chapter.require(choose_layer(chapter))

head = maps(chapter, layer_inputs)
ranges(chapter, layer_inputs, head)
chapter.exercise("exchange")

chapter.heading("flow")
chapter.text(
    "mathematics",
    d=layer_inputs.num_hiddens,
    h=layer_inputs.num_heads,
    w=layer_inputs.num_hiddens // layer_inputs.num_heads,
)
flow(chapter, layer_inputs, head)

rounding = rounding_bound(layer_inputs.steps)
with chapter.claims():
    broken = chapter.break_and_explain("wrong-root", "dealt-out", "undivided")
    theirs = cache(
        lambda: (
            wrong_root(layer_inputs.layer, layer_inputs.steps)
            if broken == "wrong-root"
            else torch_residuals(layer_inputs.layer, layer_inputs.inputs)
        )
    )
    walk = dealt_out if broken == "dealt-out" else walk_residual
    rows = (
        (lambda: undivided(layer_inputs.steps))
        if broken == "undivided"
        else lambda: row_sum_error(layer_inputs.steps.trace)
    )
    chapter.claim("torch", lambda: theirs()[0], rounding)
    chapter.claim("torch-weights", lambda: theirs()[1], rounding, heads=layer_inputs.num_heads)
    chapter.claim("walk", lambda: walk(layer_inputs.layer, layer_inputs.steps), rounding)
    chapter.claim("rows", rows, ROUNDING)

chapter.exercise("ones", reveal=partial(ones, chapter))
chapter.tabs(
    cost=lambda: cost(chapter, layer_inputs), batch=lambda: batch(chapter, layer_inputs), toy=lambda: toy(chapter)
)

chapter.exercise("double")
chapter.code(
    MultiHeadAttention,
    attention_weights,
    DotProductAttention,
    multi_head_steps,
    one_head_at_a_time,
    torch_multi_head,
    torch_residuals,
    multi_head_cost,
    book_toy,
    attend,
)
chapter.downloads(
    {
        "weights": layer_inputs.steps.weights[0, head].numpy(),
        "all_weights": layer_inputs.steps.weights[0].numpy(),
        "output": layer_inputs.steps.output[0].numpy(),
    },
    rows=layer_inputs.tokens.labels,
    columns=layer_inputs.tokens.labels,
)
chapter.next()
