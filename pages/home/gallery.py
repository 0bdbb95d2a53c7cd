"""The cards of the home page."""

from __future__ import annotations

import streamlit as st

from ui.contents import page
from ui.frame import Frame
from viz_core.pretrained import available
from viz_core.runtime.assets import ASSETS

PICTURES = ASSETS / "gallery"
"""What each chapter draws, kept: `python -m pages.home.draw`. On a fresh server nobody waits for torch to draw it."""


def chapter_card(home: Frame, name: str) -> None:
    """A chapter's picture, its name as a link and a line about it."""
    with st.container(border=True, width=300, key=f"card-{name}"):
        st.image(PICTURES / f"{name}.png", width="stretch", alt=home.words(f"alt.{name}"))
        st.page_link(page(name), icon=":material/arrow_forward:")
        st.caption(home.words(f"teaser.{name}"))


def model_list(home: Frame) -> None:
    """The shipped models with their scores, and where they run."""
    cards = available()
    if not cards:
        st.info(home.words("no-models"), icon=":material/inventory_2:")
    for card in cards:
        # Every score, under the name by which the words of its task ask for it.
        scores = {name.removeprefix("bleu_").removesuffix("_4"): f"{score:.1f}" for name, score in card.scores.items()}
        parameters = f"{card.config['parameters'] / 1e6:.1f} M"
        words = "picture-model" if card.task == "classification" else "model"
        st.markdown(home.words(words, title=card.title, parameters=parameters, licence=card.licence, **scores))
    home.device()
