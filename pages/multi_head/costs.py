"""The cost of heads: parameters, multiplications and weights."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.multi_head.inputs import MOST_HEADS, LayerInputs
from ui.chapter.chapter import Chapter
from viz_core.lessons.multi_head.costs import MultiHeadCost, divisors, multi_head_cost

_ROW = 35  # pixels of a row of Streamlit's tables


def cost(chapter: Chapter, layer_inputs: LayerInputs) -> None:
    """Parameters, multiplications and weights as heads grow at fixed width."""
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
    heads = [h for h in divisors(d) if h <= MOST_HEADS]
    costs = [multi_head_cost(n, d, h) for h in heads]
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
