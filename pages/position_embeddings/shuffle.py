"""The permutation test: which schemes change their outputs when the words are shuffled."""

from __future__ import annotations

import math

import streamlit as st
from torch import Tensor

from pages.position_embeddings.tokens import ROUNDING, TokenInputs
from ui.blocks.residual_figure import residual_figure
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.lessons.position_embeddings.order import is_equivariant, order_residuals, reversed_order
from viz_core.positional.register import SCHEMES
from viz_core.pretrained.token_vectors import shuffled_order

ORDER_MATTERS = 1e-3  # far above rounding, far below the residual of any scheme that sees order


def shuffle(chapter: Chapter, inputs: TokenInputs) -> None:
    """The permutation test: shuffle the words before attention or after it, under every scheme."""
    chapter.text("shuffle")
    if len(set(inputs.tokens.labels)) < 2:
        st.info(chapter.words("nothing-to-shuffle"), icon=":material/edit:")
        return
    backwards = chapter.controls.toggle("backwards")
    order = chosen_order(chapter, inputs, backwards)
    residuals = order_residuals(inputs.layer, order)
    names = {**chapter.words.group("figure"), **chapter.words.group("option")}
    figure = residual_figure(residuals, ORDER_MATTERS, names["order-residual"], names)
    summary = [f"{names[name]} {residual:.2g}" for name, residual in residuals.items()]
    joining = [names[scheme.name] for scheme in SCHEMES if scheme.depends_on == "distance"]
    chapter.figure("order", figure, summary=summary, distance_only=joining)
    blind = [name for name, residual in residuals.items() if residual <= ROUNDING]
    least = min((residual for residual in residuals.values() if residual > ROUNDING), default=math.inf)
    gap = least > 100 * max(residuals[name] for name in blind)
    chapter.finding("gap", gap, blind=[names[name] for name in blind])
    with chapter.claim_row("claims-shuffle"):
        if chapter.break_and_explain("unshuffled", part="shuffle"):
            residuals = order_residuals(inputs.layer, order.sort().values)  # the order of the sentence
        for scheme in SCHEMES:
            if is_equivariant(scheme, inputs.layer.sizes, order):
                chapter.claim("blind", residuals[scheme.name], ROUNDING, scheme=names[scheme.name])
            else:
                chapter.claim_at_least("ordered", residuals[scheme.name], ORDER_MATTERS, scheme=names[scheme.name])


def chosen_order(chapter: Chapter, inputs: TokenInputs, backwards: bool) -> Tensor:
    """Show the words before and after the reader's shuffle; return the order."""
    labels = inputs.tokens.labels
    number = int(st.session_state[chapter.controls.key("order")])
    order = reversed_order(labels) if backwards else shuffled_order(labels, number)
    after = escape(" ".join(labels[i] for i in order.tolist()))
    st.markdown(chapter.words("shuffled", before=escape(" ".join(labels)), after=after))
    return order
