"""Costs of a head with a softmax and with a state, by number of tokens."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from ui.chapter.chapter import Chapter
from viz_core.lessons.linear_attention.forms import head_cost

_LENGTHS = (256, 1024, 4096, 32_768, 262_144)
_WIDTHS = (16, 32, 64, 128, 256)


def costs(chapter: Chapter) -> None:
    """Draw the costs as a table, and where both are equal."""
    width = int(chapter.controls.select_slider("width", _WIDTHS, 128))
    equal = head_cost(2 * width - 1, width)
    chapter.text("cost", width=width, state=f"{width * width:,}")
    words = chapter.words.group("column")
    found = {n: head_cost(n, width) for n in _LENGTHS}
    columns = {
        words["tokens"]: list(found),
        **{
            words[name]: [getattr(cost, name) for cost in found.values()]
            for name in ("softmax", "linear", "cache", "state")
        },
    }
    number = st.column_config.NumberColumn(format="localized")
    st.dataframe(pd.DataFrame(columns), hide_index=True, height="content", column_config=dict.fromkeys(columns, number))
    with chapter.claim_row("claims-cost"):
        chapter.claim("equal", abs(equal.softmax - equal.linear), 0.0, n=f"{2 * width - 1:,}")
