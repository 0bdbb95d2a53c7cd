"""Layers of published models that are linear attention."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.lessons.linear_attention.model_layers import CONFIGURATIONS, model_layers

_ROW = 35  # pixels of a row of Streamlit's tables
_layers = cached(message="measuring")(model_layers)


def models(chapter: Chapter) -> None:
    """Draw a row for each model, counted in its default configuration."""
    chapter.text("models")
    chapter.lazy("models", lambda: _table(chapter), _ROW * (1 + len(CONFIGURATIONS)))


def _table(chapter: Chapter) -> None:
    words, rules = chapter.words.group("column"), chapter.words.group("rule")
    rows = [
        {
            words["model"]: each.model,
            words["rule"]: rules[each.rule],
            words["layers"]: each.layers,
            words["linear-layers"]: each.linear,
        }
        for each in _layers()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
