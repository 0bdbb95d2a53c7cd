"""Inputs of the chapter: a model, and a sample, an upload, a photo or a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st

from pages.vision_transformer.drawing import drawing
from serving.models.model_spec import ModelSpec, ShippedClassifier
from serving.requests.classification import ClassificationRequest
from serving.requests.picture_facts import PictureFacts, picture_facts
from serving.requests.request import Picture
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model, runner
from ui.compute.pictures import LAB, classification, picture_model, read_picture, sample_picture
from ui.compute.slots import load_or_stop
from ui.text.errors import explain
from ui.text.markdown import escape
from ui.text.model_card import class_label
from ui.widgets.inputs import picture_file
from viz_core.images.drawn import GARMENTS, SCENES
from viz_core.images.open_image import PictureError
from viz_core.pretrained import Classification, ModelCard, available
from viz_core.pretrained.picture_model import PictureModel

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
    loaded = _load(chapter, name) if name else None
    if loaded is None:
        return None
    drawable = ("draw",) if loaded[1].filters.shape[1] == 1 else ()
    source = str(chapter.controls.choice("source", ("sample", "upload", "camera", *drawable), "sample"))
    return Chosen(*loaded, source)


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


def _load(chapter: Chapter, name: str) -> tuple[ModelSpec[PictureModel], PictureFacts] | None:
    try:
        model = load_or_stop(lambda: picture_model(name))
        with st.spinner(chapter.words("loading", model=escape(name.removeprefix(LAB)))):
            load_or_stop(lambda: runner().load(model))  # it may take longer than a slot may be taken
        return model, evaluate_model(model, picture_facts)
    except ValueError as error:  # no such model, a broken file, or an absent device: each says so
        st.error(explain(error), icon=":material/inventory_2:")
    return None


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
        st.caption(chapter.words(f"no-{source}"))
        return None
    try:
        return read_picture(content)
    except PictureError as error:
        st.warning(explain(error), icon=":material/image:")
    return None
