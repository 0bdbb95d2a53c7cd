"""Similarity of every two positions in the position tables of several models (Wang and Chen 2020)."""

from __future__ import annotations

import math

import streamlit as st

from pages.position_embeddings.experiment_figures import similarity_figure
from pages.position_embeddings.tokens import WIDTH
from ui.chapter.chapter import Chapter
from ui.text.model_card import model_title
from viz_core.lessons.position_embeddings.learn_table import table_offset_share
from viz_core.lessons.position_embeddings.picture_tokens import LearnedTable, shipped_position_tables
from viz_core.models.patch_grid import resize_grid
from viz_core.positional import sinusoidal_table

_SIDE = 7  # all grids are resized to this side, so that they can be compared


def across_models(chapter: Chapter) -> None:
    """Similarity of positions in sinusoids and in the table of every shipped picture model."""
    chapter.text("across")
    names = chapter.words.group("figure")
    tables = {names["table-sinusoidal"]: sinusoidal_table(_SIDE**2, WIDTH)}
    for card, positions in _tables():
        side = math.isqrt(len(positions))
        tables[names.get(card.name, model_title(card))] = resize_grid(positions, (side, side), (_SIDE, _SIDE))
    shares = [f"{title} {table_offset_share(table):.0%}" for title, table in tables.items()]
    titles = {f"table-{i}": title for i, title in enumerate(tables)}
    figure = similarity_figure({str(i): table.numpy() for i, table in enumerate(tables.values())}, names | titles)
    chapter.figure("across", figure, shares=shares, side=_SIDE)


@st.cache_resource(max_entries=1, show_spinner=False)
def _tables() -> list[LearnedTable]:
    return shipped_position_tables()
