"""The cards of the home page."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import streamlit as st
from PIL import Image

from ui.chapter import Chapter
from ui.contents import folder, page
from viz_core.figures.raster import weights_image
from viz_core.pretrained import available


def chapter_picture(name: str) -> Image.Image:
    """A chapter's live picture, from its own folder, as st.navigation takes its page from there."""
    picture: Image.Image = import_module(f"pages.{folder(name)}.card").picture()
    return picture


def chapter_card(home: Chapter, name: str) -> None:
    """A chapter's live picture, its name as a link and a line about it."""
    with st.container(border=True, width=300, key=f"card-{name}"):
        try:
            picture = chapter_picture(name)
        except ValueError:  # no model or no device; the sidebar and the list below say which
            picture = weights_image(np.zeros((1, 1), dtype=np.float32))
        st.image(picture, width="stretch", alt=home.words(f"alt.{name}"))
        st.page_link(page(name), icon=":material/arrow_forward:")
        st.caption(home.words(f"teaser.{name}"))


def model_list(home: Chapter) -> None:
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
