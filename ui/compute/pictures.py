"""Vision models, pictures, and their classifications."""

from __future__ import annotations

import hashlib

from PIL import Image

from serving.decoding.child import preview
from serving.decoding.files import decode_preview
from serving.requests.models import ModelSpec, ShippedClassifier
from serving.requests.request import Picture
from serving.requests.shipped import ClassificationRequest
from ui.compute.models import lab_vision_model, map_groups, run
from ui.compute.slots import cached
from viz_core.images.drawn import drawn_picture
from viz_core.images.open_image import PictureError
from viz_core.maps.contributions import ContributionKind
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel
from viz_core.view.map_group import MapGroup

LAB = "Lab: "
"""Prefix of the name of a vision model of the model lab."""


def picture_model(name: str) -> ModelSpec[PictureModel]:
    """Return a shipped classifier, or a vision model of the lab if its name begins with "Lab: ".

    Raises:
        HubError: if the lab has no such model.
    """
    if name.startswith(LAB):
        return lab_vision_model(name.removeprefix(LAB))
    return ShippedClassifier(name)


def sample_picture(name: str) -> Picture:
    """Return one of the drawn pictures."""
    return Picture(f"sample {name}", drawn_picture(name))


def read_picture(content: bytes) -> Picture:
    """Return the picture of a visitor's file, once it could be decoded within the limits of this server.

    Raises:
        PictureError: if it cannot be decoded or is too large; the message is for the visitor.
    """
    picture = Picture(hashlib.sha256(content).hexdigest(), content)
    picture_preview(picture)
    return picture


def picture_preview(picture: Picture) -> tuple[Image.Image, tuple[int, int]]:
    """Return a small RGB copy of a picture, and the width and height of the picture itself.

    Raises:
        PictureError: as `read_picture`.
    """
    if isinstance(picture.content, bytes):
        return _decoded(picture)
    image = picture.open()
    return preview(image), image.size


@cached(keep=PictureError)
def _decoded(picture: Picture) -> tuple[Image.Image, tuple[int, int]]:
    return decode_preview(picture.payload())


def classification(request: ClassificationRequest) -> Classification:
    """Return the classification of a picture."""
    return run(request, "classification")


def picture_maps(
    request: ClassificationRequest, language: str, contribution_kind: ContributionKind = ""
) -> tuple[MapGroup, ...]:
    """Return the maps of a picture for an attention view."""
    return map_groups(request, "vision-transformer", language, contribution_kind)
