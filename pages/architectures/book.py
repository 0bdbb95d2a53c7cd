"""The book's numbers for self-attention and for the reach of a convolution, beside ours."""

from __future__ import annotations

import streamlit as st

from pages.architectures.network_figure import centred_figure, graph_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.architectures.costs import LayerSizes, path_length
from viz_core.lessons.architectures.layers import self_attention_shape


def self_attention(chapter: Chapter) -> None:
    """Show self-attention as a graph and a centred convolution beside it, with the book's numbers of both."""
    chapter.text("self")
    labels = chapter.words.group("figure")
    for column, name in zip(st.columns(2, gap="large"), ("graph", "centred"), strict=True):
        with column:
            st.markdown(chapter.words(name))
            chapter.figure(name, graph_figure(7, labels) if name == "graph" else centred_figure(labels))
    chapter.source_card("own-shape", lambda: [float(size) for size in self_attention_shape()])
    chapter.source_card("five-tokens", lambda: path_length("convolution", 0, 4, LayerSizes(5, 8, 3, 3)))
