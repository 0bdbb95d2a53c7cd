"""The cost of heads: parameters, multiplications and weights."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from pages.multi_head import figures
from pages.multi_head.inputs import MOST_HEADS, LayerInputs
from ui.chapter.chapter import Chapter
from viz_core.lessons.multi_head.costs import MultiHeadCost, divisors, multi_head_cost

_ROW = 35  # pixels of a row of Streamlit's tables


def cost(chapter: Chapter, layer_inputs: LayerInputs) -> None:
    """Parameters, multiplications and weights as heads grow: at fixed width, and where each head has all of it."""
    names = chapter.words.group("figure")
    n, d = layer_inputs.inputs.shape[1:]
    own = multi_head_cost(n, d, layer_inputs.num_heads)
    chapter.text(
        "cost",
        d=d,
        n=n,
        heads=layer_inputs.num_heads,
        parameters=f"{own.parameters:,}",
        multiplications=f"{own.multiplications:,}",
        weights=f"{own.weights:,}",
    )
    count = chapter.controls.choice("count", ("parameters", "multiplications", "weights"), "multiplications")
    heads = [h for h in divisors(d) if h <= MOST_HEADS]
    costs = [multi_head_cost(n, d, h) for h in heads]
    lines = {
        "shared": [getattr(cost, count) for cost in costs],
        "whole": [getattr(multi_head_cost(n, d, h, d), count) for h in heads],
    }
    first, last = f"{lines['shared'][0]:,}", f"{lines['shared'][-1]:,}"
    figure = partial(figures.cost_figure, lines, heads, layer_inputs.num_heads, names[count], names)
    chapter.figure("cost", figure, what=names[count], first=first, last=last, most=heads[-1])
    chapter.lazy("cost-table", lambda: _draw_table(_cost_table(chapter, d, heads, costs)), _ROW * (1 + len(heads)))
    chapter.text("published")
    chapter.source_card("heads")


def _draw_table(table: pd.DataFrame) -> None:
    number = st.column_config.NumberColumn(format="localized")
    st.dataframe(table, hide_index=True, height="content", column_config=dict.fromkeys(table.columns, number))


def _cost_table(chapter: Chapter, d: int, heads: list[int], costs: list[MultiHeadCost]) -> pd.DataFrame:
    words = chapter.words.group("column")
    rows = [
        {
            words["heads"]: h,
            words["width"]: d // h,
            words["parameters"]: cost.parameters,
            words["projections"]: cost.projections,
            words["products"]: cost.products,
            words["weights"]: cost.weights,
        }
        for h, cost in zip(heads, costs, strict=True)
    ]
    return pd.DataFrame(rows)
