"""Asking for a model and a picture: a sample, an upload, the camera, or a drawing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import streamlit as st

from ui.chapter import Chapter
from ui.controls import escape
from ui.vision_models import Picture, classification, picture_model
from viz_core.drawn import GARMENTS, SCENES
from viz_core.picture_model import PictureModel
from viz_core.pictures import PictureError, open_picture
from viz_core.pretrained import Classification, available

_TYPES = ["png", "jpg", "jpeg", "webp", "gif"]


@dataclass(frozen=True, eq=False)
class Asked:
    """A model by its name, a picture by its digest, and what the one makes of the other."""

    name: str
    picture: Picture
    model: PictureModel
    found: Classification


def ask(chapter: Chapter) -> Asked | None:
    """What the reader wants looked at, and by which model; None after a sentence that says what is missing."""
    with chapter.card("ask"):
        name = _ask_model(chapter)
        model = _load(name) if name else None
        if name is None or model is None:
            return None
        picture = _ask_picture(chapter, model)
    if picture is None:
        return None
    with st.spinner(chapter.words("looking")):
        found = classification(name, picture)
    return Asked(name, picture, model, found)


def _ask_model(chapter: Chapter) -> str | None:
    names = [card.name for card in available(task="classification")]
    if not names:
        st.info(chapter.words("no-model"), icon=":material/inventory_2:")
        return None
    default = "vit-fashion-mnist" if "vit-fashion-mnist" in names else names[0]
    return str(chapter.controls.choice("model", tuple(names), default))


def _load(name: str) -> PictureModel | None:
    try:
        return picture_model(name)
    except ValueError as error:  # no such model, a broken file, or an absent device: each says so
        st.error(escape(str(error)), icon=":material/inventory_2:")
    return None


def _ask_picture(chapter: Chapter, model: PictureModel) -> Picture | None:
    source = chapter.controls.choice("source", ("sample", "upload", "camera"), "sample")
    if source == "sample":
        return _sample(chapter, model)
    key = chapter.controls.key(str(source))
    label = chapter.words.label(str(source))
    file = st.camera_input(label, key=key) if source == "camera" else st.file_uploader(label, type=_TYPES, key=key)
    if file is None:
        st.caption(chapter.words(f"no-{source}"))
        return None
    return _opened(file.getvalue())


def _sample(chapter: Chapter, model: PictureModel) -> Picture:
    samples = GARMENTS if model.filters.shape[1] == 1 else SCENES
    name = str(chapter.controls.choice("sample", tuple(samples), next(iter(samples))))
    st.caption(chapter.words("licence"))
    return Picture(f"sample {name}", samples[name]())


def _opened(content: bytes) -> Picture | None:
    try:
        return Picture(hashlib.sha256(content).hexdigest(), open_picture(content))
    except PictureError as error:
        st.warning(escape(str(error)), icon=":material/image:")
    return None
