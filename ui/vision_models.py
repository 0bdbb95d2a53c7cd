"""Models that look at pictures and what they answered, cached within bounds and shared, read-only, by all sessions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from jaxtyping import Float
from PIL import Image

from ui.compute import computed
from ui.words import load_words
from viz_core.figures.map_group import MapGroup
from viz_core.figures.vision import picture_groups
from viz_core.picture_model import PictureModel
from viz_core.pretrained import Classification, load_classifier
from viz_core.vision import PermutationTest, permutation_test, random_order

LAB = "Lab: "
"""Before the name of a model that the model lab loaded."""


@dataclass(frozen=True)
class Picture:
    """A picture as it was brought; its digest tells it from others."""

    digest: str
    image: Image.Image = field(compare=False, repr=False)


@st.cache_resource(max_entries=4, show_spinner=False)
def _classifier(name: str) -> PictureModel:
    return load_classifier(name)


def picture_model(name: str) -> PictureModel:
    """A shipped classifier, or with "Lab: " before its name a vision model of the lab; loaded once.

    Raises:
        CheckpointError: if there is no such shipped model, or its files are broken.
        HubError: if the lab has no such model, or it does not look at pictures.
        ValueError: if ATLAS_DEVICE names a device that is not here.
    """
    if name.startswith(LAB):
        from ui.model_lab_vision import lab_vision  # brings transformers along: only where it is asked for

        return lab_vision(name.removeprefix(LAB))
    return _classifier(name)


@computed()
def classification(name: str, picture: Picture) -> Classification:
    """What a model makes of a picture; nothing in it changes, so sessions that ask the same share it."""
    model = picture_model(name)
    return model.look(model.prepare(picture.image))


@computed()
def picture_maps(name: str, picture: Picture, language: str) -> tuple[MapGroup, ...]:
    """The maps of a picture as the attention view shows them; they keep their thumbnails."""
    labels = load_words("vision-transformer", language).group("view")
    return picture_groups(classification(name, picture), labels)


@computed()
def relevance(name: str, picture: Picture, label: str) -> Float[np.ndarray, "tokens tokens"]:
    """Gradient-weighted relevance for a label."""
    return picture_model(name).relevance(classification(name, picture).prepared, label).numpy()


@computed()
def permuted(name: str, picture: Picture, seed: int) -> PermutationTest:
    """The permutation test with the shuffled order of a seed."""
    model, found = picture_model(name), classification(name, picture)
    order = random_order(found.grid[0] * found.grid[1], seed)
    return permutation_test(model.predict, found.prepared.pixels, model.patch_size, order)
