"""Inputs of the chapter: a model, a picture or a drawing, and tokens with their places on the picture."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import streamlit as st
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from serving.requests.models import ModelSpec, ShippedClassifier
from serving.requests.request import Picture
from serving.requests.shipped import ClassificationRequest
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model
from ui.compute.pictures import LAB, classification, picture_model, read_picture, sample_picture
from ui.text.markdown import join_sentences
from ui.text.model_card import class_label
from ui.text.translations import explain
from ui.widgets.component import component
from ui.widgets.inputs import picture_file
from viz_core.images.open_image import PictureError
from viz_core.lab.pictures import PictureFacts, picture_facts
from viz_core.pretrained import Classification, ModelCard, available
from viz_core.pretrained.classifier import PictureModel
from viz_core.pretrained.samples import GARMENTS, SCENES
from viz_core.view.state import ViewState

_MAX_CHARACTERS = 2**20  # of the message; paper of 280 x 280 pixels takes a few thousand
_START = "data:image/png;base64,"

_mount = component("drawing")


def drawing(key: str, words: Mapping[str, str]) -> bytes | None:
    """Show the canvas and return its content, or None while it is blank.

    Args:
        words: "paper" (what it is, for a screen reader), "size", "shade", "dark", "middle", "light", "rub", "undo",
            "clear", "hint", "down" and "up".
    """
    _mount(key=key, data=dict(words), on_drawing_change=lambda: None)
    message = (st.session_state.get(key) or {}).get("drawing")
    if not isinstance(message, str) or not message.startswith(_START) or len(message) > _MAX_CHARACTERS:
        return None
    try:
        return base64.b64decode(message.removeprefix(_START), validate=True)
    except binascii.Error:
        return None


_FIRST = "vit-fashion-mnist"
_FIRST_SCENE = "truck"  # its answer changes when its patches are shuffled: positions matter


@dataclass(frozen=True, eq=False)
class PictureInputs:
    """A model and a picture, facts about the model, and its classification of the picture."""

    request: ClassificationRequest
    facts: PictureFacts
    found: Classification


def shipped_card(picture_inputs: PictureInputs) -> ModelCard | None:
    """The card of a shipped model; None for one of the lab's."""
    return next((card for card in available() if picture_inputs.request.model == ShippedClassifier(card.name)), None)


class Chosen(NamedTuple):
    """A loaded model, facts about it, and where the picture comes from."""

    model: ModelSpec[PictureModel]
    facts: PictureFacts
    source: str

    @property
    def grey(self) -> bool:
        """Whether the model reads grey pictures."""
        return self.facts.filters.shape[1] == 1


def choose_model(chapter: Chapter) -> Chosen | None:
    """Read the model and the kind of picture from the controls; None, with a message, without a model."""
    name = _choose_model(chapter)
    if name is None:
        return None
    try:
        model = picture_model(name)
        facts = evaluate_model(model, picture_facts)
    except ValueError as error:  # no such model, a broken file, or an absent device: each says so
        st.error(explain(error), icon=":material/inventory_2:")
        return None
    drawable = ("draw",) if facts.filters.shape[1] == 1 else ()
    source = str(chapter.controls.choice("source", ("sample", "upload", "camera", *drawable), "sample"))
    return Chosen(model, facts, source)


def choose_picture(chapter: Chapter, chosen: Chosen) -> PictureInputs | None:
    """Read the picture and classify it; None, with a message, where it is missing."""
    picture = _sample(chapter, chosen.grey) if chosen.source == "sample" else _brought(chapter, chosen.source)
    if picture is None:
        return None
    try:
        request = ClassificationRequest(chosen.model, picture)
        return PictureInputs(request, chosen.facts, classification(request))
    except ValueError as error:  # the model cannot take this picture, and says why
        st.warning(explain(error), icon=":material/image:")
    return None


def _choose_model(chapter: Chapter) -> str | None:
    """Read the model: a shipped one, or one of the lab's that a link names."""
    names = sorted((card.name for card in available(task="classification")), key=lambda name: name != _FIRST)
    requested = st.query_params.get(chapter.controls.key("lab"))
    lab = f"{LAB}{requested}" if requested else None
    if lab is not None:
        names.append(lab)
    if not names:
        st.info(chapter.words("no-model"), icon=":material/inventory_2:")
        return None
    return str(chapter.controls.choice("model", tuple(names), lab or names[0]))


def _sample(chapter: Chapter, grey: bool) -> Picture:
    samples = GARMENTS if grey else SCENES
    names = {name: class_label(name) for name in samples}
    name = str(chapter.controls.choice("sample", samples, samples[0] if grey else _FIRST_SCENE, names))
    return sample_picture(name)


def _brought(chapter: Chapter, source: str) -> Picture | None:
    """Read a file, a photo or a drawing; None, with a message, where there is none or it cannot be opened."""
    key = chapter.controls.key(source)
    if source == "draw":
        content = drawing(key, chapter.words.group("draw"))
    elif source == "camera":
        photo = st.camera_input(chapter.words.label(source), key=key)
        content = photo.getvalue() if photo else None
    else:
        content = picture_file(chapter.words.label(source), key)
    if content is None:
        names = {"draw": ("no-draw",), "camera": ("private",), "upload": ("no-upload", "private")}[source]
        st.caption(join_sentences(map(chapter.words, names)))
        return None
    try:
        return read_picture(content)
    except PictureError as error:
        st.warning(explain(error), icon=":material/image:")
    return None


ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms


def token_read(view: ViewState) -> int:
    """The token whose attention is shown: the first pinned query, else the class token."""
    return next((pin.index for pin in view.pins if pin.axis == "query"), 0)


def place_of(found: Classification, token: int) -> tuple[int, int] | None:
    """Row and column of a patch, from 0; None for the class token and its like."""
    patch = token - found.num_special
    return divmod(patch, found.grid[1]) if patch >= 0 else None


def name_of(chapter: Chapter, patch: tuple[int, int] | None) -> str:
    if patch is None:
        return chapter.words("class-token")
    return chapter.words("patch", row=patch[0] + 1, column=patch[1] + 1)


def strongest(chapter: Chapter, values: Float[np.ndarray, "rows columns"]) -> str:
    """The patch with the largest value, in words."""
    row, column = divmod(int(values.argmax()), values.shape[1])
    return chapter.words("strongest", row=row + 1, column=column + 1, value=f"{values.max():.3f}")


def over_grid(found: Classification, row: Float[Tensor, " tokens"]) -> Float[np.ndarray, "rows columns"]:
    """One token's row over the patches; what goes to the class token is left out, and nothing is divided anew."""
    return row[found.num_special :].reshape(found.grid).numpy()


def pin_of(point: Mapping[str, float], num_special: int, grid: tuple[int, int]) -> str:
    """The pin of a patch that was clicked, as it stands in the address: points count rows and columns from 1."""
    return f"q{num_special + (int(point['y']) - 1) * grid[1] + int(point['x']) - 1}"


def enlarged(image: Image.Image) -> Image.Image:
    """A small picture with its pixels as crisp squares."""
    larger = max(1, 280 // max(image.size))
    return image.resize((image.width * larger, image.height * larger), Image.Resampling.NEAREST)
