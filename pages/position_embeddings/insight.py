"""The main figure: shuffle the words, and see whose output notices."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from torch import Tensor

from pages.position_embeddings.tokens import ROUNDING, TokenInputs
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape as escape_markdown
from ui.widgets.chart import named_parts
from ui.widgets.figure_style import ACCENT, Labels, lay_out
from viz_core.lessons.position_embeddings.order import order_changes
from viz_core.positional.register import BY_NAME
from viz_core.pretrained.token_vectors import shuffled_order

ORDER_MATTERS = 1e-3  # far above rounding, far below the change under any scheme that sees order


def insight(chapter: Chapter, inputs: TokenInputs, scheme_name: str, broken: str) -> None:
    """Draw how much each word's output changes when the words are shuffled, and claim that it does."""
    labels = inputs.tokens.labels
    if len(set(labels)) < 2:
        st.info(chapter.words("nothing-to-shuffle"), icon=":material/edit:")
        return
    scheme = BY_NAME["none" if broken else scheme_name]
    order = chosen_order(chapter, inputs)
    changes = order_changes(scheme, inputs.layer, order).numpy()
    name = chapter.words(f"option.{scheme.name}")
    shuffled = [labels[i] for i in order.tolist()]
    limit = float(order_changes(BY_NAME[scheme_name], inputs.layer, order).max())
    figure = insight_figure(changes, shuffled, max(limit, ORDER_MATTERS), chapter.words.group("figure"))
    chapter.figure("insight", figure, scheme=name, largest=f"{changes.max():.2g}")
    with chapter.claim_row("claims-main"):
        if scheme_name == "none":
            chapter.claim("blind", float(changes.max()), ROUNDING, scheme=name)
        else:
            chapter.claim_at_least("noticed", float(changes.max()), ORDER_MATTERS, scheme=name)


def chosen_order(chapter: Chapter, inputs: TokenInputs) -> Tensor:
    """Show the words before and after the reader's shuffle; return the order."""
    labels = inputs.tokens.labels
    order = shuffled_order(labels, int(st.session_state[chapter.controls.key("order")]))
    before, after = (escape_markdown(" ".join(words)) for words in (labels, [labels[i] for i in order.tolist()]))
    st.markdown(chapter.words("shuffled", before=before, after=after))
    return order


def insight_figure(changes: np.ndarray, words: list[str], limit: float, labels: Labels) -> go.Figure:
    """Return a bar for each word, in the shuffled order."""
    figure = go.Figure(
        go.Bar(
            x=np.arange(len(words), dtype=np.float32),
            y=changes,
            marker={"color": ACCENT},
            meta="change",
            hovertemplate="%{y:.2g}<extra></extra>",
        )
    )
    texts = [escape(word) for word in words]
    ticks = {"tickmode": "array", "tickvals": list(range(len(words))), "ticktext": texts}
    high = {"range": [0, 1.1 * limit]}
    return lay_out(figure, "", labels["change"], height=300, xaxis=ticks, yaxis=high, meta=named_parts(x="word"))
