"""The cards of the home page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st
import torch
from PIL import Image

from ui.chapter import Chapter
from ui.contents import page
from ui.models import translation_maps
from ui.words import ENGLISH
from viz_core.figures.raster import signed_image, weights_image
from viz_core.figures.translation import aligning_head
from viz_core.positional import relative_projection, sinusoidal_table
from viz_core.positional.scheme_costs import Sizes
from viz_core.positional.schemes import BY_NAME, Setting
from viz_core.pretrained import available
from viz_core.samples import sentences


def _cross_attention() -> Image.Image:
    """A head that aligns French and English, on the first long sample."""
    text = next(sample.english for sample in sentences() if sample.id == "cat")
    groups = translation_maps("transformer-en-fr", text, 1, ENGLISH)
    view = aligning_head(groups)
    return weights_image(groups[-1].calls[view.layer].weights(head=view.head)[0].numpy())


def _sinusoidal_table() -> Image.Image:
    """A table as wide as a card is, so that none of it is cut off."""
    return signed_image(sinusoidal_table(40, 64).numpy(), 1.0)


def _relative_projection() -> Image.Image:
    """The matrix that moves positions by five."""
    return signed_image(relative_projection(5, 16).float().numpy(), 1.0)


def _relative_scores() -> Image.Image:
    """What relative positions add to the scores of one word, repeated: one value an offset."""
    line = Setting(torch.ones(24, 32), Sizes(24, 32, 1, 1, 24))
    scores = BY_NAME["relative"].position_scores(line)[0]
    return signed_image(scores.numpy(), float(scores.abs().max()))


# A chapter's picture, computed now.
PICTURES: dict[str, Callable[[], Image.Image]] = {
    "position-embeddings": _relative_scores,
    "relative-projection": _relative_projection,
    "sinusoidal-encoding": _sinusoidal_table,
    "transformer": _cross_attention,
}


def chapter_card(home: Chapter, name: str) -> None:
    """A chapter's live picture, its name as a link and a line about it."""
    with st.container(border=True, width=300, key=f"card-{name}"):
        try:
            picture = PICTURES[name]()
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
        st.markdown(
            home.words(
                "model",
                title=card.title,
                parameters=f"{card.config['parameters'] / 1e6:.1f} M",
                greedy=f"{card.scores['bleu_greedy']:.1f}",
                beam=f"{card.scores['bleu_beam_4']:.1f}",
                licence=card.licence,
            )
        )
    home.device()
